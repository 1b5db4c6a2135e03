-- 1
select count(*) from visits;
-- 2
select count(*) from visits where engine_id <> 0;
-- 3
select sum(engine_id), count(*), avg(width) from visits;
-- 4
select avg(user_id) from visits;
-- 5
select count(distinct user_id) from visits;
-- 6
select count(distinct phrase) from visits;
-- 7
select min(day), max(day) from visits;
-- 8
select engine_id, count(*) from visits where engine_id <> 0 group by engine_id order by count(*) desc, engine_id;
-- 9
select region_id, count(distinct user_id) as users from visits group by region_id order by users desc, region_id limit 10;
-- 10
select region_id, sum(engine_id), count(*) as c, avg(width), count(distinct user_id)
from visits group by region_id order by c desc, region_id limit 10;
-- 11
select phone_model, count(distinct user_id) as users from visits where phone_model <> ''
group by phone_model order by users desc, phone_model limit 10;
-- 12
select phone, phone_model, count(distinct user_id) as users from visits where phone_model <> ''
group by phone, phone_model order by users desc, phone, phone_model limit 10;
-- 13
select phrase, count(*) as c from visits where phrase <> '' group by phrase order by c desc, phrase limit 10;
-- 14
select phrase, count(distinct user_id) as users from visits where phrase <> ''
group by phrase order by users desc, phrase limit 10;
-- 15
select engine_id, phrase, count(*) as c from visits where phrase <> ''
group by engine_id, phrase order by c desc, engine_id, phrase limit 10;
-- 16
select user_id, count(*) as c from visits group by user_id order by c desc, user_id limit 10;
-- 17
select user_id, phrase, count(*) as c from visits group by user_id, phrase order by c desc, user_id, phrase limit 10;
-- 18
select count(*) from (select user_id, phrase from visits group by user_id, phrase) as pairs;
-- 19
select user_id, extract(minute from seen_at) as m, phrase, count(*) as c from visits
group by user_id, m, phrase order by c desc, user_id, m, phrase limit 10;
-- 20
select user_id from visits where user_id = 4242;
-- 21
select count(*) from visits where url like '%garden%';
-- 22
select phrase, min(url), count(*) as c from visits where url like '%garden%' and phrase <> ''
group by phrase order by c desc, phrase limit 10;
-- 23
select phrase, min(url), min(title), count(*) as c, count(distinct user_id) from visits
where title like '%Garden%' and url not like '%.shop.%' and phrase <> ''
group by phrase order by c desc, phrase limit 10;
-- 24
select * from visits where url like '%garden%' order by seen_at, visit_id limit 10;
-- 25
select phrase from visits where phrase <> '' order by seen_at, visit_id limit 10;
-- 26
select phrase from visits where phrase <> '' order by phrase limit 10;
-- 27
select phrase from visits where phrase <> '' order by seen_at, phrase limit 10;
-- 28
select counter_id, avg(length(url)) as l, count(*) as c from visits where url <> ''
group by counter_id having count(*) > 1000 order by l desc, counter_id limit 25;
-- 29
select substring(referrer, 9, 20) as host, avg(length(referrer)) as l, count(*) as c, min(referrer)
from visits where referrer <> '' group by host having count(*) > 1000 order by l desc, host limit 25;
-- 30
select sum(width), sum(width + 1), sum(width + 2), sum(width + 3), sum(width + 4), sum(width + 5),
  sum(width + 6), sum(width + 7), sum(width + 8), sum(width + 9), sum(width + 10), sum(width + 11),
  sum(width + 12), sum(width + 13), sum(width + 14), sum(width + 15), sum(width + 16), sum(width + 17),
  sum(width + 18), sum(width + 19), sum(width + 20), sum(width + 21), sum(width + 22), sum(width + 23)
from visits;
-- 31
select engine_id, client_ip, count(*) as c, sum(refresh), avg(width) from visits where phrase <> ''
group by engine_id, client_ip order by c desc, engine_id, client_ip limit 10;
-- 32
select visit_id, client_ip, count(*) as c, sum(refresh), avg(width) from visits where phrase <> ''
group by visit_id, client_ip order by c desc, visit_id, client_ip limit 10;
-- 33
select url, count(*) as c from visits group by url order by c desc, url limit 10;
-- 34
select 1 as one, url, count(*) as c from visits group by one, url order by c desc, url limit 10;
-- 35
select client_ip, client_ip - 1, client_ip - 2, client_ip - 3, count(*) as c from visits
group by client_ip, client_ip - 1, client_ip - 2, client_ip - 3 order by c desc, client_ip limit 10;
-- 36
select url, count(*) as views from visits
where counter_id = 62 and day >= date '2026-07-01' and day <= date '2026-07-31' and hidden = 0 and refresh = 0 and url <> ''
group by url order by views desc, url limit 10;
-- 37
select title, count(*) as views from visits
where counter_id = 62 and day >= date '2026-07-01' and day <= date '2026-07-31' and hidden = 0 and refresh = 0 and title <> ''
group by title order by views desc, title limit 10;
-- 38
select source_id, engine_id, device_id, case when engine_id = 0 and device_id = 0 then referrer else '' end as src,
  url as dst, count(*) as views
from visits where counter_id = 62 and day >= date '2026-07-01' and day <= date '2026-07-31' and refresh = 0
group by source_id, engine_id, device_id, src, dst order by views desc, source_id, engine_id, device_id, src, dst limit 10 offset 100;
-- 39
select width, height, count(*) as views from visits
where counter_id = 62 and day >= date '2026-07-01' and day <= date '2026-07-31' and refresh = 0 and hidden = 0 and url_hash = 3
group by width, height order by views desc, width, height limit 10 offset 10;
-- 40
select date_trunc('minute', seen_at) as m, count(*) as views from visits
where counter_id = 62 and day >= date '2026-07-14' and day <= date '2026-07-15' and refresh = 0 and hidden = 0
group by m order by m limit 10 offset 100;
