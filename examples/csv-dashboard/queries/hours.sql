-- Trips by the hour in which they begin.
select hour(started) as label, count(*) as trips
from trip
group by hour(started)
order by label
