-- Trips of each week, as members and as guests.
select
  cast(date_trunc('week', started) as date) as label,
  count(*) filter (where member) as members,
  count(*) filter (where not member) as guests
from trip
group by cast(date_trunc('week', started) as date)
order by label
