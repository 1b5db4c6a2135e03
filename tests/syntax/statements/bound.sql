select i, s as name, t.* from t where n > 1
select distinct n from t order by n
select n, count(*), sum(d) from t group by n having count(*) > 1 order by 2 limit 3
select t.i, u.s from t join u on t.i = u.i left join u as w on w.i = t.n
select * from t join u using (i)
with c (a) as (select i from t) select a from c union all select n from u order by a limit 2 offset 1
with recursive c (a) as (select 1 union all select a + 1 from c where a < 3) select a from c
select q.a from (select i as a from t) as q
select i, row_number() over (partition by n order by i), sum(i) over (order by i rows between 1 preceding and current row) from t
select sum(i) over w from t window w as (partition by n)
select string_agg(s, ',' order by i) filter (where n > 0), count(distinct n) from t
select cast(s as int), case when n > 1 then 'a' else 'b' end, extract(year from at) from t
select trim(both 'x' from s), substring(s from 1 for 2), position('a' in s), ceil(d), floor(d) from t
select i from t where s like 'a%' and n in (1, 2) and d between 1 and 2 and s is not null
select i from t where exists (select 1 from u where u.i = t.i) or n = any (select n from u)
select i from t where n in (select n from u)
select at + interval '1 day', date '2020-01-01', -n, not (n > 1), s || 'x' from t
select i from t for update
select i from t order by n desc limit 2 for update
select a from v
select * from range(3)
values (1, 'a'), (2, 'b')
insert into u (i, s) values (1, 'a')
insert into u (i, s) values (1, 'a') on conflict (i) do update set s = excluded.s where u.n > 0 returning i
insert into u select i, s, n from t
replace into u (i, s) values (1, 'a')
insert into u default values
update t set s = 'x', n = n + 1 where i = 3
update t set s = u.s from u where u.i = t.i returning t.i
delete from t where i = 3
delete from t using u where u.i = t.i
create table k (a int primary key, b varchar(5) not null default 'x', c int unique, check (a > 0), unique (b), index ix (c))
create table k as select i, s from t
create table k (like t)
create index ix on u (s)
create unique index ix on u (s, n)
create view w as select i from t
alter table u add column c int
alter table u drop column s
alter table u rename column s to name
alter table u rename to other
alter table u alter column s set default 'y'
alter table u add constraint cu unique (n)
alter table u add constraint cc check (n > 0)
alter table x drop constraint c
drop table t
drop view v
drop index n on t
truncate table t
show tables
show columns from t
show schemas
show create table t
describe t
explain select i from t
begin
start transaction
commit
rollback
savepoint a
release savepoint a
rollback to savepoint a
