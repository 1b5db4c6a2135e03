CREATE TABLE "run" (
	"id" serial PRIMARY KEY NOT NULL,
	"runner" integer NOT NULL,
	"day" date NOT NULL,
	"km" double precision NOT NULL,
	"minutes" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runner" (
	"id" serial PRIMARY KEY NOT NULL,
	"name" varchar(60) NOT NULL,
	CONSTRAINT "runner_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE INDEX "run_runner" ON "run" USING btree ("runner","day");