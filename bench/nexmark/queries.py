"""The queries of Nexmark in Spark SQL, by their public description (Apache Beam and the later ones of Flink's suite).

Where a description leaves ties open, the order here is total. q10 is the view that a file sink writes; q12 counts by the time at which a
bid was taken in, the column `taken`; q13 joins a static table `side`.
"""

QUERIES = {
    "q0": "select auction, bidder, price, dateTime, extra from bid",
    "q1": "select auction, bidder, 0.908 * price as price, dateTime, extra from bid",
    "q2": "select auction, price from bid where mod(auction, 123) = 0 or mod(auction, 7) = 0",
    "q3": """
select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id
where a.category = 10 and p.state in ('OR', 'ID', 'CA')""",
    "q4": """
select category, avg(final) average from (select max(b.price) final, a.category from auction a join bid b on a.id = b.auction
  where b.dateTime between a.dateTime and a.expires group by a.id, a.category) group by category""",
    "q5": """
with counts as (select auction, window(dateTime, '10 seconds', '2 seconds') w, count(*) num from bid group by 1, 2)
select c.auction, c.num, c.w.start starts from counts c
join (select max(num) most, w from counts group by w) m on c.w = m.w and c.num >= m.most""",
    "q6": """
select seller, avg(final) over (partition by seller order by dateTime rows between 10 preceding and current row) average
from (select a.id, a.seller, a.dateTime, max(b.price) final from auction a join bid b on a.id = b.auction
  where b.dateTime between a.dateTime and a.expires group by a.id, a.seller, a.dateTime)""",
    "q7": """
select b.auction, b.price, b.bidder, b.dateTime from bid b
join (select max(price) most, window(dateTime, '10 seconds') w from bid group by 2) m
  on b.price = m.most and b.dateTime >= m.w.start and b.dateTime < m.w.end""",
    "q8": """
select p.id, p.name, p.w.start starts from (select id, name, window(dateTime, '10 seconds') w from person group by 1, 2, 3) p
join (select seller, window(dateTime, '10 seconds') w from auction group by 1, 2) a on p.id = a.seller and p.w = a.w""",
    "q9": """
select id, itemName, seller, category, auction, bidder, price, at from (select a.*, b.auction, b.bidder, b.price, b.dateTime at,
    row_number() over (partition by a.id order by b.price desc, b.dateTime) place
  from auction a join bid b on a.id = b.auction where b.dateTime between a.dateTime and a.expires) where place <= 1""",
    "q10": """
select auction, bidder, price, dateTime, extra, date_format(dateTime, 'yyyy-MM-dd') dt, date_format(dateTime, 'HH:mm') hm from bid""",
    "q11": """
select bidder, count(*) bids, session_window.start starts, session_window.end ends
from bid group by bidder, session_window(dateTime, '10 seconds')""",
    "q12": """
select bidder, count(*) bids, window.start starts, window.end ends from bid group by bidder, window(taken, '10 seconds')""",
    "q13": "select b.auction, b.bidder, b.price, b.dateTime, s.value from bid b join side s on mod(b.auction, 100) = s.key",
    "q14": """
select auction, bidder, 0.908 * price as price, case when hour(dateTime) between 8 and 18 then 'dayTime'
    when hour(dateTime) <= 6 or hour(dateTime) >= 20 then 'nightTime' else 'otherTime' end as bidTimeType,
  dateTime, extra, length(extra) - length(replace(extra, 'c', '')) c_counts
from bid where 0.908 * price > 1000000 and 0.908 * price < 50000000""",
    "q15": """
select date_format(dateTime, 'yyyy-MM-dd') day, count(*) total_bids,
  count(*) filter (where price < 10000) rank1_bids, count(*) filter (where price >= 10000 and price < 1000000) rank2_bids,
  count(*) filter (where price >= 1000000) rank3_bids, count(distinct bidder) total_bidders,
  count(distinct bidder) filter (where price < 10000) rank1_bidders,
  count(distinct bidder) filter (where price >= 10000 and price < 1000000) rank2_bidders,
  count(distinct bidder) filter (where price >= 1000000) rank3_bidders, count(distinct auction) total_auctions,
  count(distinct auction) filter (where price < 10000) rank1_auctions,
  count(distinct auction) filter (where price >= 10000 and price < 1000000) rank2_auctions,
  count(distinct auction) filter (where price >= 1000000) rank3_auctions
from bid group by 1""",
    "q16": """
select channel, date_format(dateTime, 'yyyy-MM-dd') day, max(date_format(dateTime, 'HH:mm')) minute, count(*) total_bids,
  count(*) filter (where price < 10000) rank1_bids, count(*) filter (where price >= 10000 and price < 1000000) rank2_bids,
  count(*) filter (where price >= 1000000) rank3_bids, count(distinct bidder) total_bidders,
  count(distinct bidder) filter (where price < 10000) rank1_bidders, count(distinct auction) total_auctions,
  count(distinct auction) filter (where price >= 1000000) rank3_auctions
from bid group by 1, 2""",
    "q17": """
select auction, date_format(dateTime, 'yyyy-MM-dd') day, count(*) total_bids, count(*) filter (where price < 10000) rank1_bids,
  count(*) filter (where price >= 10000 and price < 1000000) rank2_bids, count(*) filter (where price >= 1000000) rank3_bids,
  min(price) min_price, max(price) max_price, avg(price) avg_price, sum(price) sum_price from bid group by 1, 2""",
    "q18": """
select auction, bidder, price, channel, url, dateTime, extra from (select *,
  row_number() over (partition by bidder, auction order by dateTime desc) place from bid) where place <= 1""",
    "q19": """
select auction, bidder, price, channel, url, dateTime, extra, place from (select *,
  row_number() over (partition by auction order by price desc, dateTime) place from bid) where place <= 10""",
    "q20": """
select b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime at, a.itemName, a.description, a.initialBid, a.reserve,
  a.dateTime, a.expires, a.seller, a.category from bid b join auction a on b.auction = a.id where a.category = 10""",
    "q21": """
select auction, bidder, price, channel, case when lower(channel) = 'apple' then '0' when lower(channel) = 'google' then '1'
  when lower(channel) = 'facebook' then '2' when lower(channel) = 'baidu' then '3'
  else regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) end as channel_id
from bid where regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> '' or lower(channel) in ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
select auction, bidder, price, channel, split(url, '/')[3] dir1, split(url, '/')[4] dir2, split(url, '/')[5] dir3 from bid""",
}
