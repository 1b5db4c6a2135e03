CREATE TABLE "author" (
	"id" serial PRIMARY KEY NOT NULL,
	"name" varchar(60) NOT NULL,
	"email" text,
	"active" boolean DEFAULT true NOT NULL,
	"born" date,
	"joined" timestamp DEFAULT now() NOT NULL,
	"settings" jsonb,
	"editor" integer,
	CONSTRAINT "author_email_unique" UNIQUE("email"),
	CONSTRAINT "author_name" UNIQUE("name"),
	CONSTRAINT "author_id" CHECK ("author"."id" > 0)
);
--> statement-breakpoint
CREATE TABLE "book" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "book_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 10 CACHE 1),
	"author_id" integer NOT NULL,
	"title" text NOT NULL,
	"price" numeric(8, 2),
	"sold" bigint DEFAULT 0 NOT NULL,
	"rating" double precision,
	"opens" time,
	"cover" "bytea"
);
--> statement-breakpoint
CREATE TABLE "book_genre" (
	"book" integer NOT NULL,
	"genre" integer NOT NULL,
	CONSTRAINT "book_genre_book_genre_pk" PRIMARY KEY("book","genre")
);
--> statement-breakpoint
CREATE TABLE "genre" (
	"id" serial PRIMARY KEY NOT NULL,
	"label" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "book_author" ON "book" USING btree ("author_id");