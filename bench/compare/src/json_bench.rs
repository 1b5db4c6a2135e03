//! The five queries of JSONBench on generated events of the shape of Bluesky's: deep, with members that
//! depend on the kind of event, and one (`subject`) that is a text here and an object there. DuckDB has
//! them in its JSON type. Both run the same text.

use crate::beside_duckdb::{Beside, Compare, Query, geomean, worst};
use crate::json_scan::{append, load_duckdb};
use crate::measure::Outcome;
use crate::options::Options;
use nacre_testing::Random;
use nacredb::Value;

const CREATED: &str = "doc->>'$.kind' = 'commit' and doc->>'$.commit.operation' = 'create'";
const POSTED: &str = "doc->>'$.commit.collection' = 'app.bsky.feed.post'";
/// Microseconds since 1970, when the first event was.
const START_US: i64 = 1_732_206_349_000_167;

pub fn run(options: &Options) -> Outcome<()> {
    let rows: i64 = options.get("rows", 1_000_000)?;
    let rounds: usize = options.get("rounds", 5)?;
    let mut beside = Beside::open("json-bench")?;
    println!("loading {rows} events into Nacre and DuckDB");
    nacre_native::block_on(
        beside.session.execute("create table bluesky (id bigint primary key, doc json)", &[]),
    )?;
    append(&mut beside.session, "bluesky", rows, |id, out| {
        out.push(vec![Value::Int(id), Value::Json(event(id, rows))]);
    })?;
    load_duckdb(&beside.connection, "bluesky", rows, &|id| event(id, rows))?;
    beside.connection.execute("checkpoint")?;
    let ratios = beside.compare(&queries(), rounds, Compare::Rows)?;
    let [one, two] = [geomean(&ratios[0]), geomean(&ratios[1])];
    println!("json-bench: geomean_ratio={one:.3} two_threads={two:.3} worst={:.3}", worst(&ratios));
    Ok(())
}

fn queries() -> Vec<Query> {
    let named = |name: &str, sql: String| (name.to_string(), sql);
    vec![
        named(
            "q1",
            "select doc->>'$.commit.collection' as event, count(*) as n from bluesky
             group by doc->>'$.commit.collection' order by n desc"
                .into(),
        ),
        named(
            "q2",
            format!(
                "select doc->>'$.commit.collection' as event, count(*) as n,
                 count(distinct doc->>'$.did') as users from bluesky where {CREATED}
                 group by doc->>'$.commit.collection' order by n desc"
            ),
        ),
        named(
            "q3",
            format!(
                "select event, hour, count(*) as n from
                 (select doc->>'$.commit.collection' as event,
                 (doc->>'$.time_us')::bigint // 3600000000 % 24 as hour from bluesky
                 where {CREATED} and doc->>'$.commit.collection' in
                 ('app.bsky.feed.post', 'app.bsky.feed.repost', 'app.bsky.feed.like')) e
                 group by event, hour order by hour, event"
            ),
        ),
        named(
            "q4",
            format!(
                "select doc->>'$.did' as who, min((doc->>'$.time_us')::bigint) as first
                 from bluesky where {CREATED} and {POSTED}
                 group by doc->>'$.did' order by first limit 3"
            ),
        ),
        named(
            "q5",
            format!(
                "select who, max(t) - min(t) as span from
                 (select doc->>'$.did' as who, (doc->>'$.time_us')::bigint as t
                 from bluesky where {CREATED} and {POSTED}) e
                 group by who order by span desc limit 3"
            ),
        ),
    ]
}

fn word(random: &mut Random, length: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz234567";
    (0..length).map(|_| char::from(LETTERS[random.below(32) as usize])).collect()
}

/// One of the users of this many events; few of them write most.
fn user(random: &mut Random, events: i64) -> String {
    let users = (events / 8).max(4) as u64;
    let most = 1 + random.below(users);
    let mut own = Random::new(random.below(most));
    format!("did:plc:{}", word(&mut own, 24))
}

fn place(random: &mut Random, events: i64, collection: &str) -> String {
    let (cid, who, key) = (word(random, 52), user(random, events), word(random, 13));
    format!(r#"{{"cid":"bafyrei{cid}","uri":"at://{who}/{collection}/{key}"}}"#)
}

/// An event as JSON.
fn event(id: i64, events: i64) -> String {
    let mut random = Random::new(id as u64);
    let random = &mut random;
    let (who, time_us) = (user(random, events), START_US + id * 3_700_000 / 4);
    let head = format!(r#""did":"{who}","time_us":{time_us}"#);
    match random.below(100) {
        0 => format!(
            r#"{{{head},"kind":"identity","identity":{{"did":"{who}","handle":"{}.bsky.social","seq":{id},"time":"{}"}}}}"#,
            word(random, 9),
            time(time_us)
        ),
        1 => format!(
            r#"{{{head},"kind":"account","account":{{"active":true,"did":"{who}","seq":{id},"time":"{}"}}}}"#,
            time(time_us)
        ),
        _ => format!(r#"{{{head},"kind":"commit","commit":{}}}"#, commit(random, events, time_us)),
    }
}

fn time(time_us: i64) -> String {
    let (seconds, ms) = (time_us / 1_000_000, time_us / 1_000 % 1_000);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("2024-11-{:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", 21 + seconds / 86_400 % 9)
}

fn commit(random: &mut Random, events: i64, time_us: i64) -> String {
    let collection = match random.below(100) {
        0..=47 => "app.bsky.feed.like",
        48..=64 => "app.bsky.feed.post",
        65..=81 => "app.bsky.graph.follow",
        82..=90 => "app.bsky.feed.repost",
        91..=94 => "app.bsky.graph.block",
        95 | 96 => "app.bsky.graph.listitem",
        97 => "app.bsky.feed.threadgate",
        98 => "app.bsky.actor.profile",
        _ => "app.bsky.feed.postgate",
    };
    let (rev, key) = (word(random, 13), word(random, 13));
    let operation = match random.below(100) {
        0..=5 => "delete",
        6 => "update",
        _ => "create",
    };
    let head = format!(
        r#""rev":"{rev}","operation":"{operation}","collection":"{collection}","rkey":"{key}""#
    );
    if operation == "delete" {
        return format!("{{{head}}}");
    }
    let record = record(random, events, collection, time_us);
    let cid = word(random, 52);
    format!(r#"{{{head},"record":{record},"cid":"bafyrei{cid}"}}"#)
}

fn record(random: &mut Random, events: i64, collection: &str, time_us: i64) -> String {
    let head = format!(r#""$type":"{collection}","createdAt":"{}""#, time(time_us));
    let post = "app.bsky.feed.post";
    match collection {
        "app.bsky.feed.like" | "app.bsky.feed.repost" => {
            format!(r#"{{{head},"subject":{}}}"#, place(random, events, post))
        }
        "app.bsky.feed.post" => {
            let words: Vec<String> = (0..4 + random.below(20))
                .map(|_| {
                    let length = 2 + random.below(7) as usize;
                    word(random, length)
                })
                .collect();
            let reply = match random.below(2) {
                0 => String::new(),
                _ => {
                    let (parent, root) = (place(random, events, post), place(random, events, post));
                    format!(r#","reply":{{"parent":{parent},"root":{root}}}"#)
                }
            };
            let langs = *random.pick(&["[\"en\"]", "[\"ja\"]", "[\"pt\",\"en\"]", "[]"]);
            format!(r#"{{{head},"langs":{langs}{reply},"text":"{}"}}"#, words.join(" "))
        }
        "app.bsky.actor.profile" => {
            format!(r#"{{{head},"displayName":"{}","description":null}}"#, word(random, 10))
        }
        _ => format!(r#"{{{head},"subject":"{}"}}"#, user(random, events)),
    }
}
