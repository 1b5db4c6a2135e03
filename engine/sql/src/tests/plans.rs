//! Plans of queries: names, types, push-down, join order, pruning.

use super::check;

#[test]
fn queries() {
    check(
        "select 1",
        "
        Project [1]
          Values [] 1 rows
        ",
    );
    check(
        "select 1 where 1 = 0",
        "
        Project [1]
          Filter false
            Values [] 1 rows
        ",
    );
    check(
        "select * from u",
        "
        Scan u [id, a, c]
        ",
    );
    check(
        "select name, a + 1, count(*) from t group by name, a + 1",
        "
        Aggregate by [name, a + 1] compute [count(*)]
          Scan t [a, name]
        ",
    );
    check(
        "select a as x, sum(b) s from t where day >= '2024-01-01' group by x having s > 10 order by s desc, 1 limit 5 offset 2",
        "
        Project [a as x, sum(b) as s]
          Limit 5 offset 2
            Sort [sum(b) desc, a] limit 7
              Filter sum(b) > 10
                Aggregate by [a] compute [sum(b)]
                  Scan t [a, b, day] where day >= DATE '2024-01-01'
        ",
    );
    check(
        "select count(*) from t",
        "
        Aggregate by [] compute [count(*)]
          Scan t []
        ",
    );
    check(
        "select count(distinct a), avg(price), sum(a), sum(ratio), min(name) from t",
        "
        Aggregate by [] compute [count(distinct a), avg(price), sum(a), sum(ratio), min(name)]
          Scan t [a, price, ratio, name]
        ",
    );
    check(
        "select distinct a from t order by a desc nulls first",
        "
        Sort [a desc nulls first]
          Aggregate by [a] compute []
            Scan t [a]
        ",
    );
    check(
        "select a from t order by b, a + 1",
        "
        Project [a]
          Sort [#1, #2]
            Project [a, b, a + 1]
              Scan t [a, b]
        ",
    );
    check(
        "select a from t order by price limit 3",
        "
        Project [a]
          Limit 3
            Sort [price] limit 3
              Scan t [a, price]
        ",
    );
    check(
        "select id from t where price < 24 and 0.05 <= ratio and tiny = 5 and big = 7 and a = 1.0 and a < 1.5",
        "
        Project [id]
          Scan t [id, a, tiny, big, price, ratio] where price < 24.00 and ratio >= 0.05 and tiny = 5 and big = 7 and a = 1 and cast(a as DECIMAL(11,1)) < 1.5
        ",
    );
    check(
        "select id from t where day between date '2024-01-01' and date '2024-01-01' + interval '3' month",
        "
        Project [id]
          Scan t [id, day] where day >= DATE '2024-01-01' and day <= DATE '2024-04-01'
        ",
    );
    check(
        "select id from t where at < '2024-05-01 10:00:00' and day < timestamp '2024-01-01 00:00:00'",
        "
        Project [id]
          Scan t [id, day, at] where at < TIMESTAMP '2024-05-01 10:00:00' and day < DATE '2024-01-01'
        ",
    );
    check(
        "select id from t where name like 'a%' escape '!' and not (a = 1 or b is null) and a in (1, 2, 3) and b not in (4) and code = 'x'",
        "
        Project [id]
          Scan t [id, a, b, name, code] where name like 'a%' escape '!' and not (a = 1 or b is null) and a in (1, 2, 3) and b <> 4 and code = 'x'
        ",
    );
    check(
        "select t.id, u.c from t left join u on t.id = u.id and u.a > 5 and t.b < 3 where t.a = 2",
        "
        Project [id, c]
          RightJoin 1 on id = id if b < 3
            Project [id, c]
              Scan u [id, a, c] where a > 5 filtered by join 1 on id
            Project [id, b]
              Scan t [id, a, b] where a = 2
        ",
    );
    check(
        "select t.id, u.c from t left join u on t.id = u.id where u.a = 2",
        "
        Project [id, c]
          InnerJoin 1 on id = id
            Scan t [id] filtered by join 1 on id
            Project [id, c]
              Scan u [id, a, c] where a = 2
        ",
    );
    check(
        "select t.id, u.c from t right join u on t.id = u.id where u.a = 2 and t.b is null",
        "
        Project [id, c]
          Filter b is null
            RightJoin 1 on id = id
              Scan t [id, b] filtered by join 1 on id
              Project [id, c]
                Scan u [id, a, c] where a = 2
        ",
    );
    check(
        "select t.id, u.c from t full join u using (id) where coalesce(c, 'x') = 'x'",
        "
        Project [id, c]
          Filter coalesce(c, 'x') = 'x'
            FullJoin on id = id
              Scan t [id]
              Scan u [id, c]
        ",
    );
    check(
        "select t.id, u.c from t join u on t.name is not distinct from u.c",
        "
        Project [id, c]
          InnerJoin on name is null = c is null and coalesce(name, '') = coalesce(c, '')
            Scan t [id, name]
            Scan u [c]
        ",
    );
    check(
        "select * from u a natural join u b",
        "
        Project [id, a, c]
          InnerJoin 1 on id = id and a = a and c = c
            Scan u [id, a, c] filtered by join 1 on id and join 1 on a
            Scan u [id, a, c]
        ",
    );
    check(
        "select id, x.c from u join u x using (id)",
        "
        Project [id, c]
          InnerJoin 1 on id = id
            Scan u [id] filtered by join 1 on id
            Scan u [id, c]
        ",
    );
    check(
        "select * from (select a, count(*) n from t group by a) x where a > 3 and n > 4",
        "
        Project [a, count(*) as n]
          Filter count(*) > 4
            Aggregate by [a] compute [count(*)]
              Scan t [a] where a > 3
        ",
    );
    check(
        "select * from (select a, b from t limit 5) x where a > 3",
        "
        Filter a > 3
          Limit 5
            Scan t [a, b]
        ",
    );
    check(
        "with x as (select a, b from t), y(q) as (select a from x) select q, x.b from x, y where q = x.a",
        "
        Project [a as q, b]
          InnerJoin 1 on a = a
            Scan t [a, b] filtered by join 1 on a
            Scan t [a]
        ",
    );
    check(
        "values (1, 'a'), (2.5, null) order by 1 limit 1",
        "
        Limit 1
          Sort [column1] limit 1
            Values [column1, column2] 2 rows
        ",
    );
    check(
        "select x.column1 from (values (1), (2)) x",
        "
        Values [column1] 2 rows
        ",
    );
    check(
        "select case a when 1 then 'x' else name end, if(flag, 1, 2.5), extract(year from day), substr(name, 2, 3), a div 2, a // 2, a % 2, -a, a || 'x', ~a, a << 2 from t",
        "
        Project [case when a = 1 then 'x' else name end, case when flag then 1.0 else 2.5 end, year(day), substring(name, 2, 3), a DIV 2, a DIV 2, a % 2, -a, cast(a as TEXT) || 'x' as a || 'x', a ^ -1, a << 2]
          Scan t [a, name, day, flag]
        ",
    );
    check(
        "select cast(a as decimal(10,2)), a::text, date_trunc('month', at), position('x' in name), instr(name, 'x'), trim(both ' ' from name), left(name, 2), ifnull(a, 0), nullif(a, 0), round(price, 1), ceil(price), concat(a, name) from t",
        "
        Project [cast(a as DECIMAL(10,2)) as a, cast(a as TEXT) as a, date_trunc('month', at), position('x', name), position('x', name), trim(name, ' '), left(name, 2), coalesce(a, 0), nullif(a, 0), round(price, 1), ceil(price), concat(cast(a as TEXT), name) as concat(a, name)]
          Scan t [a, price, name, at]
        ",
    );
    check(
        "select sum(a) filter (where b > 1) from t",
        "
        Aggregate by [] compute [sum(a) filter (where b > 1)]
          Scan t [a, b]
        ",
    );
    check(
        "select a from t where id = ? and a > $1",
        "
        42601 syntax: parameters must all be written ?, all $n or all :name (line 1, column 38)
        ",
    );
    check(
        "select a from t where id = ? and name = ? and price > ? limit ? offset ?",
        "
        Project [a]
          Limit $4 offset $5
            Scan t [id, a, price, name] where id = $1 and name = $2 and price > $3
        parameters [Int64, Text { max_chars: None }, Decimal { precision: 15, scale: 2 }, Int64, Int64]
        ",
    );
    check(
        "select price * (1 - 0.1), price / 3, price + 1.255, a / b, a * big, price * ratio from t",
        "
        Project [price * 0.9, price / 3, cast(price as DECIMAL(16,3)) + 1.255 as price + 1.255, a DIV b, cast(a as DECIMAL(20,0)) * big as a * big, cast(price as DOUBLE) * ratio as price * ratio]
          Scan t [a, b, big, price, ratio]
        ",
    );
}

#[test]
fn tpch() {
    check(
        "select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price, sum(l_extendedprice * (1 - l_discount)) as sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty, count(*) as count_order from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus",
        "
        Project [l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price, sum(l_extendedprice * (1.00 - l_discount)) as sum_disc_price, sum(l_extendedprice * (1.00 - l_discount) * (1.00 + l_tax)) as sum_charge, avg(l_quantity) as avg_qty, count(*) as count_order]
          Sort [l_returnflag, l_linestatus]
            Aggregate by [l_returnflag, l_linestatus] compute [sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1.00 - l_discount)), sum(l_extendedprice * (1.00 - l_discount) * cast(1.00 + l_tax as DECIMAL(38,2))), avg(l_quantity), count(*)]
              Scan lineitem [l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate] where l_shipdate <= DATE '1998-09-02'
        ",
    );
    check(
        "select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority from customer, orders, lineitem where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15' group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10",
        "
        Project [l_orderkey, sum(l_extendedprice * (1.00 - l_discount)) as revenue, o_orderdate, o_shippriority]
          Limit 10
            Sort [sum(l_extendedprice * (1.00 - l_discount)) desc, o_orderdate] limit 10
              Aggregate by [l_orderkey, o_orderdate, o_shippriority] compute [sum(l_extendedprice * (1.00 - l_discount))]
                InnerJoin 1 on l_orderkey = o_orderkey
                  Project [l_orderkey, l_extendedprice, l_discount]
                    Scan lineitem [l_orderkey, l_extendedprice, l_discount, l_shipdate] where l_shipdate > DATE '1995-03-15' filtered by join 1 on l_orderkey
                  InnerJoin 2 on o_custkey = c_custkey
                    Scan orders [o_orderkey, o_custkey, o_orderdate, o_shippriority] where o_orderdate < DATE '1995-03-15' filtered by join 2 on o_custkey
                    Project [c_custkey]
                      Scan customer [c_custkey, c_mktsegment] where c_mktsegment = 'BUILDING'
        ",
    );
    check(
        "select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue from customer, orders, lineitem, supplier, nation, region where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA' and o_orderdate >= date '1994-01-01' and o_orderdate < date '1994-01-01' + interval '1' year group by n_name order by revenue desc",
        "
        Project [n_name, sum(l_extendedprice * (1.00 - l_discount)) as revenue]
          Sort [sum(l_extendedprice * (1.00 - l_discount)) desc]
            Aggregate by [n_name] compute [sum(l_extendedprice * (1.00 - l_discount))]
              InnerJoin 1 on s_suppkey = l_suppkey and s_nationkey = c_nationkey
                Scan supplier [s_suppkey, s_nationkey] filtered by join 1 on s_suppkey and join 1 on s_nationkey
                InnerJoin 2 on l_orderkey = o_orderkey
                  Scan lineitem [l_orderkey, l_suppkey, l_extendedprice, l_discount] filtered by join 2 on l_orderkey
                  InnerJoin 3 on o_custkey = c_custkey
                    Project [o_orderkey, o_custkey]
                      Scan orders [o_orderkey, o_custkey, o_orderdate] where o_orderdate >= DATE '1994-01-01' and o_orderdate < DATE '1995-01-01' filtered by join 3 on o_custkey
                    InnerJoin 4 on c_nationkey = n_nationkey
                      Scan customer [c_custkey, c_nationkey] filtered by join 4 on c_nationkey
                      InnerJoin 5 on n_regionkey = r_regionkey
                        Scan nation [n_nationkey, n_name, n_regionkey] filtered by join 5 on n_regionkey
                        Project [r_regionkey]
                          Scan region [r_regionkey, r_name] where r_name = 'ASIA'
        ",
    );
    check(
        "select sum(l_extendedprice * l_discount) as revenue from lineitem where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24",
        "
        Project [sum(l_extendedprice * l_discount) as revenue]
          Aggregate by [] compute [sum(l_extendedprice * l_discount)]
            Scan lineitem [l_quantity, l_extendedprice, l_discount, l_shipdate] where l_shipdate >= DATE '1994-01-01' and l_shipdate < DATE '1995-01-01' and l_discount >= 0.05 and l_discount <= 0.07 and l_quantity < 24.00
        ",
    );
    check(
        "select supp_nation, cust_nation, l_year, sum(volume) as revenue from (select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year, l_extendedprice * (1 - l_discount) as volume from supplier, lineitem, orders, customer, nation n1, nation n2 where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE')) and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year",
        "
        Project [supp_nation, cust_nation, l_year, sum(volume) as revenue]
          Sort [supp_nation, cust_nation, l_year]
            Aggregate by [supp_nation, cust_nation, l_year] compute [sum(volume)]
              Project [n_name as supp_nation, n_name as cust_nation, year(l_shipdate) as l_year, l_extendedprice * (1.00 - l_discount) as volume]
                InnerJoin 1 on s_suppkey = l_suppkey and s_nationkey = n_nationkey
                  Scan supplier [s_suppkey, s_nationkey] filtered by join 1 on s_suppkey and join 1 on s_nationkey
                  InnerJoin 2 on l_orderkey = o_orderkey
                    Scan lineitem [l_orderkey, l_suppkey, l_extendedprice, l_discount, l_shipdate] where l_shipdate >= DATE '1995-01-01' and l_shipdate <= DATE '1996-12-31' filtered by join 2 on l_orderkey
                    InnerJoin 3 on o_custkey = c_custkey
                      Scan orders [o_orderkey, o_custkey] filtered by join 3 on o_custkey
                      InnerJoin 4 on c_nationkey = n_nationkey
                        Scan customer [c_custkey, c_nationkey] filtered by join 4 on c_nationkey
                        InnerJoin if n_name = 'FRANCE' and n_name = 'GERMANY' or n_name = 'GERMANY' and n_name = 'FRANCE'
                          Scan nation [n_nationkey, n_name] where (n_name = 'FRANCE' or n_name = 'GERMANY')
                          Scan nation [n_nationkey, n_name] where (n_name = 'GERMANY' or n_name = 'FRANCE')
        ",
    );
    check(
        "select nation, o_year, sum(amount) as sum_profit from (select n_name as nation, extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount from part, supplier, lineitem, partsupp, orders, nation where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%') as profit group by nation, o_year order by nation, o_year desc",
        "
        Project [nation, o_year, sum(amount) as sum_profit]
          Sort [nation, o_year desc]
            Aggregate by [nation, o_year] compute [sum(amount)]
              Project [n_name as nation, year(o_orderdate) as o_year, l_extendedprice * (1.00 - l_discount) - ps_supplycost * l_quantity as amount]
                InnerJoin 1 on o_orderkey = l_orderkey
                  Scan orders [o_orderkey, o_orderdate] filtered by join 1 on o_orderkey
                  InnerJoin 2 on l_suppkey = s_suppkey and l_partkey = ps_partkey
                    Scan lineitem [l_orderkey, l_partkey, l_suppkey, l_quantity, l_extendedprice, l_discount] filtered by join 2 on l_suppkey and join 2 on l_partkey
                    InnerJoin 3 on ps_suppkey = s_suppkey
                      InnerJoin 4 on ps_partkey = p_partkey
                        Scan partsupp [ps_partkey, ps_suppkey, ps_supplycost] filtered by join 3 on ps_suppkey and join 4 on ps_partkey
                        Project [p_partkey]
                          Scan part [p_partkey, p_name] where p_name like '%green%'
                      InnerJoin 5 on s_nationkey = n_nationkey
                        Scan supplier [s_suppkey, s_nationkey] filtered by join 5 on s_nationkey
                        Scan nation [n_nationkey, n_name]
        ",
    );
    check(
        "select c_count, count(*) as custdist from (select c_custkey, count(o_orderkey) from customer left outer join orders on c_custkey = o_custkey and o_comment not like '%special%requests%' group by c_custkey) as c_orders (c_custkey, c_count) group by c_count order by custdist desc, c_count desc",
        "
        Project [c_count, count(*) as custdist]
          Sort [count(*) desc, c_count desc]
            Aggregate by [count(o_orderkey)] compute [count(*)]
              Aggregate by [c_custkey] compute [count(o_orderkey)]
                RightJoin 1 on o_custkey = c_custkey
                  Project [o_orderkey, o_custkey]
                    Scan orders [o_orderkey, o_custkey, o_comment] where o_comment not like '%special%requests%' filtered by join 1 on o_custkey
                  Scan customer [c_custkey]
        ",
    );
    check(
        "select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end) / sum(l_extendedprice * (1 - l_discount)) as promo_revenue from lineitem, part where l_partkey = p_partkey and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-09-01' + interval '1' month",
        "
        Project [100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1.00 - l_discount) else 0.0000 end) / sum(l_extendedprice * (1.00 - l_discount)) as promo_revenue]
          Aggregate by [] compute [sum(case when p_type like 'PROMO%' then l_extendedprice * (1.00 - l_discount) else 0.0000 end), sum(l_extendedprice * (1.00 - l_discount))]
            InnerJoin 1 on l_partkey = p_partkey
              Project [l_partkey, l_extendedprice, l_discount]
                Scan lineitem [l_partkey, l_extendedprice, l_discount, l_shipdate] where l_shipdate >= DATE '1995-09-01' and l_shipdate < DATE '1995-10-01' filtered by join 1 on l_partkey
              Scan part [p_partkey, p_type]
        ",
    );
    check(
        "select sum(l_extendedprice* (1 - l_discount)) as revenue from lineitem, part where (p_partkey = l_partkey and p_brand = 'Brand#12' and l_quantity >= 1 and l_quantity <= 1 + 10 and p_size between 1 and 5 and l_shipmode in ('AIR', 'AIR REG')) or (p_partkey = l_partkey and p_brand = 'Brand#23' and l_quantity >= 10 and l_quantity <= 10 + 10 and p_size between 1 and 10 and l_shipmode in ('AIR', 'AIR REG'))",
        "
        Project [sum(l_extendedprice * (1.00 - l_discount)) as revenue]
          Aggregate by [] compute [sum(l_extendedprice * (1.00 - l_discount))]
            InnerJoin 1 on l_partkey = p_partkey if p_brand = 'Brand#12' and l_quantity >= 1.00 and l_quantity <= 11.00 and p_size <= 5 or p_brand = 'Brand#23' and l_quantity >= 10.00 and l_quantity <= 20.00 and p_size <= 10
              Project [l_partkey, l_quantity, l_extendedprice, l_discount]
                Scan lineitem [l_partkey, l_quantity, l_extendedprice, l_discount, l_shipmode] where l_shipmode in ('AIR', 'AIR REG') and (l_quantity >= 1.00 and l_quantity <= 11.00 or l_quantity >= 10.00 and l_quantity <= 20.00) filtered by join 1 on l_partkey
              Scan part [p_partkey, p_brand, p_size] where p_size >= 1 and (p_brand = 'Brand#12' and p_size <= 5 or p_brand = 'Brand#23' and p_size <= 10)
        ",
    );
}
