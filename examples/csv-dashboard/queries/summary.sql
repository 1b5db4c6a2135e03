-- The whole file in one line.
select
  count(*) as trips,
  round(avg(timestampdiff(minute, started, ended)), 1) as minutes,
  sum(fare) as revenue,
  round(100.0 * count(*) filter (where member) / count(*), 1) as member_percent
from trip
