-- Where trips begin, and how many more bicycles leave a station than return to it.
with departures as (
  select from_station as station, count(*) as trips from trip group by from_station
), arrivals as (
  select to_station as station, count(*) as trips from trip group by to_station
)
select d.station as label, d.trips, d.trips - a.trips as surplus
from departures d
join arrivals a on a.station = d.station
order by d.trips desc
