select top 5 with ties i from t
select distinct on (a) a from t
select * exclude (a) from t
select * except (a) from t
select * replace (a as b) from t
select * rename (a as b) from t
select * ilike 'a%' from t
select a into b from t
select straight_join sql_no_cache a from t
select a from t lateral view explode(x) y as z
select a from t prewhere b = 1
select a from t connect by prior a = b start with c = 1
select a from t cluster by a
select a from t distribute by a sort by b
select a from t qualify row_number() over (order by a) = 1
select a, count(*) from t group by all
select a from t group by a with rollup
select a from t group by a with totals
select a from t order by all
select a from t order by a nulls first
select a from t order by a desc nulls last
select a from t order by a with fill from 1 to 9 step 2
select a from t order by a interpolate (b as c)
select a from t limit 1 by a
select a from t limit 1, 2
select a from t offset 3 rows
select a from t fetch first 3 rows with ties
select a from t fetch first 30 percent rows only
select a from t for share
select a from t for update of t nowait
select a from t for update skip locked
select a from t for json auto
select a from t for xml path('x')
select a from t settings x = 1
select a from t format csv
select a from t |> where a > 1
select as struct a from t
select as value a from t
select a from t as x (b, c)
select a from t as x (b int)
select a from t tablesample (10 percent)
select a from t tablesample bernoulli (10) repeatable (3)
select a from t partition (p)
select a from t with (nolock)
select a from t use index (x)
select a from t for system_time as of '2020-01-01'
select a from f(1) with ordinality
select a from t global join u on t.a = u.a
select a from t natural join u
select a from t semi join u on t.a = u.a
select a from (t join u on true) as x
select a from (select 1) tablesample (10 percent)
select a from lateral (select 1) x
select a from unnest(b) with offset as c
with a as materialized (select 1) select 1
with a as not materialized (select 1) select 1
select a union distinct select b
select a union by name select b
select a union all by name select b
select f(distinct a)
select f(all a)
select f(a order by b)
select f(a limit 3)
select f(a having max b)
select f(a ignore nulls)
select f(a on overflow truncate '…' with count)
select f(a separator ',')
select f(a null on null)
select f(a) filter (where b)
select f(a) within group (order by b)
select f(a) ignore nulls over (order by b)
select f(a) respect nulls over (order by b)
select f(1)(a)
select {fn f(a)}
select f(a => 1)
select sum(a) over (w order by a)
select sum(a) over (order by a rows 1 preceding)
select sum(a) over (order by a range between unbounded preceding and 1 following)
select sum(a) over (order by a groups between 1 preceding and 1 following)
select try_cast(a as int)
select safe_cast(a as date format 'x')
select cast(a as int array)
select a::int
select case a when 1 then 2 end
select extract(week(monday) from a)
select trim(a, 'x')
select trim(leading 'x' from a)
select substr(a, 1, 2)
select ceil(a to day)
select floor(a, 2)
select a not like 'b' escape 'c'
select a like any (b)
select a not in (1)
select a not between 1 and 2
select not exists (select 1)
select a not in (select 1)
select interval '1' day (3) to second (4)
select interval '1-2' year to month
insert into t partition (a = 1) select 1
insert overwrite table t select 1
insert into table t select 1
insert low_priority into t values (1)
insert ignore into t values (1)
insert or ignore into t values (1)
insert or rollback into t values (1)
insert into t as x values (1)
insert into t values (1) as x (a)
insert into t values (1) on duplicate key update a = 2
insert into t values (1) on conflict do nothing
insert into t values (1) on conflict on constraint c do nothing
insert into t values (1) returning *
insert into t (a) output inserted.a values (1)
insert into t format csv
update or ignore t set a = 1
update t set a = 1 order by a limit 2
update t set a = 1 output inserted.a where b = 1
update t set a = 1 returning a
update t join u on t.a = u.a set t.b = 1
delete from t order by a limit 2
delete from t output deleted.a where b = 1
delete from t returning a
delete t from t join u on t.a = u.a
create or replace table t (a int)
create temporary table t (a int)
create global temporary table t (a int)
create external table t (a int) stored as parquet location '/x'
create transient table t (a int)
create volatile table t (a int)
create unlogged table t (a int)
create dynamic table t (a int) target_lag = '1 minute' warehouse = w as select 1
create iceberg table t (a int) external_volume = 'v' catalog = 'c' base_location = 'b'
create table if not exists t (a int)
create table t (a int) without rowid
create table t (a int) strict
create table t (a int) on commit drop
create table t (a int) on commit delete rows
create table t (a int) inherits (u)
create table t partition of u for values from (1) to (2)
create table t (a int) partition by range (a)
create table t (a int) partitioned by (b int)
create table t (a int) cluster by (a)
create table t (a int) clustered by (a) into 4 buckets
create table t (a int) comment = 'x'
create table t (a int) comment 'x'
create table t (a int) with (fillfactor = 70)
create table t (a int) options (x = 1)
create table t (a int) tblproperties ('x' = '1')
create table t (a int) engine = innodb auto_increment = 7 charset = latin1
create table t (a int) engine = MergeTree primary key (a) order by (a)
create table t on cluster c (a int)
create table t (a int) copy grants
create table t (a int) enable_schema_evolution = true change_tracking = true data_retention_time_in_days = 1
create table t (a int) default_ddl_collation = 'x'
create table t (a int) with tag (x = 'y')
create table t (a int) diststyle all sortkey (a)
create table t (a int) backup no
create table t clone u
create table t like u
create table t (like u including defaults)
create multiset table t as (select 1 as a) with no data
create table t as select 1 with data and statistics
create table t (a int constraint x primary key)
create table t (a int null)
create table t (a int comment 'x')
create table t (a int auto_increment)
create table t (a int generated always as identity)
create table t (a int generated always as (b + 1) stored)
create table t (a int on update current_timestamp)
create table t (a varchar(3) character set latin1)
create table t (a varchar(3) collate nocase)
create table t (a int references u (b) on delete cascade)
create table t (a int invisible)
create table t (a int options (x = 1))
create table t (a varchar(3 octets))
create table t (a timestamp with time zone)
create table t (a int, constraint c primary key x using hash (a desc) comment 'x')
create table t (a int, primary key (a) include (b))
create table t (a int, constraint c unique nulls not distinct (a) deferrable initially deferred)
create table t (a int, constraint c unique key x using hash (a) comment 'y')
create table t (a int, unique (a) include (b) not enforced)
create table t (a int, constraint c foreign key (a) references u (b) match full on delete set null)
create table t (a int, constraint c check (a > 1) not enforced)
create table t (a int, fulltext key x (a))
create table t (a int, index x using btree (a) comment 'y')
create index concurrently if not exists x on t using gin (a)
create index x on t (a text_pattern_ops desc nulls first)
create index x on t (a) include (b) nulls not distinct with (fillfactor = 70) where a > 1
create index x on t (a) using hash comment 'y'
create index x on t (a) algorithm = inplace lock = none
create or replace view w as select 1
create materialized view w as select 1
create temporary view w as select 1
create secure view w copy grants as select 1
create view if not exists w as select 1
create view w comment = 'x' as select 1
create view w with (security_barrier = true) as select 1
create view w as select 1 with no schema binding
create view w cluster by (a) as select 1
create definer = 'a'@'b' sql security invoker view w as select 1
create or alter view w as select 1
alter table if exists t add column a int
alter table only t add column a int
alter table t on cluster c add column a int
alter table t add column if not exists a int first
alter table t add column a int after b
alter table t drop column if exists a cascade
alter table t drop a
alter table t add constraint c check (a > 1) not valid
alter table t drop constraint if exists c cascade
alter table t alter column a type int using b
alter table t alter column a drop not null
drop table if exists a, b cascade
drop table a restrict
drop table a purge
drop temporary table a
drop index x on t
truncate table only t restart identity cascade
truncate table if exists t on cluster c
truncate table t partition (p)
truncate t *
show full tables from d like 'a'
show extended full columns from t where a = 1
show terse tables history in schema s starts with 'x' limit 3 from 'y'
show external tables
show schemas like 'a'
show terse schemas history
explain analyze select 1
explain verbose select 1
explain query plan select 1
explain estimate select 1
explain format = json select 1
explain (analyze, costs off) select 1
describe table t
describe formatted t
begin transaction
begin immediate
begin isolation level serializable, read only
commit and chain
commit and no chain
rollback and chain
end transaction
