"""Foreign keys: who needs a parent, who may not go, and what follows."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quereus_store.errors import IntegrityError
from tests.execute.database import Database


def fleet(db: Database, actions: str = "") -> Database:
    db.run("create table ship (id integer primary key, name text)")
    db.run(f"create table crew (id integer primary key, ship integer null references ship (id) {actions})")
    db.run("insert into ship values (1, 'Kite'), (2, 'Orca'), (3, 'Wren')")
    db.run("insert into crew values (10, 1), (11, 1), (20, 2), (30, null)")
    return db


# --- children -------------------------------------------------------------------------------------


def test_a_child_needs_a_parent(db: Database) -> None:
    fleet(db)
    error = db.error("insert into crew values (40, 9)")
    assert (error.code, error.message) == (19, "CHECK constraint failed: _fk_crew_ship")
    assert error.details["values"] == (9,)
    assert db.fails("update crew set ship = 9 where id = 10") == "CHECK constraint failed: _fk_crew_ship"
    assert db.change("insert into crew values (40, null), (41, 3)") == 2


def test_the_parent_may_come_later_in_the_transaction(db: Database) -> None:
    fleet(db)
    db.run("begin; insert into crew values (40, 4); insert into ship values (4, 'Mew'); commit")
    assert db.rows("select * from crew where id = 40") == [(40, 4)]


def test_children_that_went_need_no_parent(db: Database) -> None:
    fleet(db)
    db.run(
        "begin; insert into crew values (40, 4), (41, 4); delete from crew where id = 40;"
        " update crew set ship = null where id = 41; commit"
    )
    assert db.rows("select * from crew where id > 30") == [(41, None)]


def test_a_commit_without_the_parent_rolls_back(db: Database) -> None:
    fleet(db)
    db.run("begin; insert into crew values (40, 4)")
    assert db.fails("commit") == "CHECK constraint failed: _fk_crew_ship"
    assert not db.in_transaction()
    assert db.rows("select count(*) from crew") == [(4,)]


def test_or_clauses_ask_at_once(db: Database) -> None:
    fleet(db)
    db.run("begin")
    assert db.fails("insert or fail into crew values (40, 3), (41, 9), (42, 3)").startswith("CHECK")
    assert db.change("insert or ignore into crew values (50, 9), (51, 3)") == 1
    db.run("commit")
    assert db.rows("select id from crew where id >= 40") == [(40,), (51,)]


def test_any_update_of_an_orphan_is_refused(db: Database) -> None:
    fleet(db)
    db.run("pragma foreign_keys = off; insert into crew values (40, 9); pragma foreign_keys = on")
    assert db.fails("update crew set id = 41 where id = 40") == "CHECK constraint failed: _fk_crew_ship"


def test_a_parent_table_may_be_missing(db: Database) -> None:
    db.run("create table c (id integer primary key, p integer null references later (id))")
    db.run("insert into c values (1, null)")
    assert db.fails("insert into c values (2, 5)") == (
        "CHECK constraint failed: _fk_c_p — referenced table 'main.later' does not exist"
    )
    db.run(
        "begin; insert into c values (2, 5); create table later (id integer primary key);"
        " insert into later values (5); commit"
    )
    assert db.rows("select * from c") == [(1, None), (2, 5)]


def test_keys_of_several_columns(db: Database) -> None:
    db.run("create table p (a integer, b text, primary key (b, a)); insert into p values (1, 'x'), (2, 'y')")
    db.run(
        "create table c (id integer primary key, a integer null, b text null,"
        " foreign key (a, b) references p (a, b))"
    )
    db.run("insert into c values (1, 1, 'x'), (2, null, 'q'), (3, 9, null)")
    assert db.fails("insert into c values (4, 1, 'y')").startswith("CHECK constraint failed: _fk_c_a_b")
    assert "violates RESTRICT" in db.fails("delete from p where a = 1")
    assert db.change("delete from p where a = 2") == 1


def test_targets_need_not_be_unique(db: Database) -> None:
    db.run(
        "create table pair (a integer, b integer, primary key (a, b)); insert into pair values (1, 1), (1, 2)"
    )
    db.run(
        "create table half (id integer primary key, a integer references pair (a));"
        "insert into half values (1, 1)"
    )
    assert "violates RESTRICT" in db.fails("delete from pair where b = 2")


@pytest.mark.parametrize(
    "index", ["", "create index by_code on p (code)", "create unique index by_code on p (code)"]
)
def test_targets_with_and_without_an_index(db: Database, index: str) -> None:
    db.run("create table p (id integer primary key, code text collate nocase)")
    db.run(
        f"{index}; create table c (id integer primary key, code text references p (code) on update cascade)"
    )
    db.run("insert into p values (1, 'Ab'), (2, 'Cd'); insert into c values (1, 'aB'), (2, 'CD')")
    assert db.fails("insert into c values (3, 'zz')") == "CHECK constraint failed: _fk_c_code"
    db.run("update p set code = 'New' where id = 1")
    assert db.rows("select * from c") == [(1, "New"), (2, "CD")]


def test_keys_that_do_not_fit_their_parent(db: Database) -> None:
    db.run("create table c (id integer primary key, a integer, b integer, foreign key (a, b) references p)")
    db.run("create table p (id integer primary key)")
    message = (
        "Foreign key '_fk_c_a_b' on table 'main.c': 2 column(s) reference the primary key of 'main.p',"
        " which has 1 column(s)."
    )
    assert db.fails("insert into c values (1, 1, 1)") == message
    assert db.fails("delete from p") == message


# --- parents --------------------------------------------------------------------------------------


def test_restrict(db: Database) -> None:
    fleet(db)
    message = "FOREIGN KEY constraint failed: {} on 'ship' violates RESTRICT from 'crew'"
    assert db.fails("delete from ship where id = 1") == message.format("DELETE")
    assert db.fails("update ship set id = 9 where id = 2") == message.format("UPDATE")
    assert db.change("delete from ship where id = 3") == 1
    assert db.change("update ship set name = 'x'") == 2


def test_restrict_is_immediate(db: Database) -> None:
    fleet(db)
    db.run("begin")
    assert "RESTRICT" in db.fails("delete from ship where id = 2")
    db.run("delete from crew where ship = 2; delete from ship where id = 2; commit")
    assert db.rows("select id from ship") == [(1,), (3,)]


def test_cascade(db: Database) -> None:
    fleet(db, "on delete cascade on update cascade")
    db.run("update ship set id = id + 100 where id < 3")
    assert db.rows("select * from crew") == [(10, 101), (11, 101), (20, 102), (30, None)]
    assert db.change("delete from ship where id = 101") == 1
    assert db.rows("select * from crew") == [(20, 102), (30, None)]


def test_set_null_and_set_default(db: Database) -> None:
    fleet(db, "on delete set null on update set default")
    db.run("delete from ship where id = 1")
    db.run("update ship set id = 9 where id = 2")
    assert db.rows("select * from crew") == [(10, None), (11, None), (20, None), (30, None)]


def test_set_default_is_checked_like_any_value(db: Database) -> None:
    db.run("create table p (id integer primary key); insert into p values (1), (2)")
    db.run(
        "create table c (id integer primary key, p integer default 7 references p (id) on delete set default)"
    )
    db.run("insert into c values (1, 1)")
    assert db.fails("delete from p where id = 1") == "CHECK constraint failed: _fk_c_p"
    db.run("insert into p values (7); delete from p where id = 1")
    assert db.rows("select * from c") == [(1, 7)]


def test_set_null_meets_not_null(db: Database) -> None:
    db.run("create table p (id integer primary key); insert into p values (1)")
    db.run("create table c (id integer primary key, p integer not null references p (id) on delete set null)")
    db.run("insert into c values (1, 1)")
    assert db.fails("delete from p") == "NOT NULL constraint failed: c.p"
    assert db.rows("select * from p") == [(1,)]


def test_equal_values_written_again_change_nothing(db: Database) -> None:
    fleet(db)
    assert db.change("update ship set id = '1' where id = 1") == 1
    assert db.change("update ship set id = id") == 3


def test_restrict_at_any_depth_refuses(db: Database) -> None:
    fleet(db, "on delete cascade")
    db.run("create table medal (id integer primary key, crew integer references crew (id))")
    db.run("insert into medal values (1, 11)")
    assert db.fails("delete from ship where id = 1") == (
        "FOREIGN KEY constraint failed: DELETE on 'crew' violates RESTRICT from 'medal'"
    )
    assert db.rows("select count(*) from ship") == [(3,)]


def test_a_null_key_is_nobodys_parent(db: Database) -> None:
    db.run("create table nk (id integer null primary key); insert into nk values (null)")
    db.run(
        "create table nkc (id integer primary key, r integer null references nk);"
        "insert into nkc values (1, null)"
    )
    assert db.change("delete from nk") == 1


def test_a_row_goes_after_its_children(db: Database) -> None:
    db.run("create table gs (id integer primary key, up integer null references gs (id))")
    db.run("insert into gs values (1, null), (2, 1), (3, 3)")
    assert db.fails("delete from gs") == (
        "CHECK constraint failed: _fk_gs_up (not exists (select 1 from main.gs where gs.up = OLD.id))"
    )
    assert db.change("delete from gs where id in (2, 3)") == 2
    assert db.change("delete from gs") == 1


def test_cascades_in_a_circle_end(db: Database) -> None:
    db.run(
        "create table ring (id integer primary key, next integer null references ring (id) on delete cascade)"
    )
    db.run("insert into ring values (1, 2), (2, 3), (3, 1), (4, 4), (5, null)")
    assert db.change("delete from ring where id = 2") == 1
    assert db.rows("select id from ring") == [(4,), (5,)]


def test_long_chains_cascade(db: Database) -> None:
    db.run(
        "create table chain (id integer primary key, up integer null references chain (id) on delete cascade)"
    )
    db.many("insert into chain values (?, ?)", [(i, i - 1 if i else None) for i in range(2000)])
    db.run("delete from chain where id = 0")
    assert db.rows("select count(*) from chain") == [(0,)]


def test_mutual_cascades(db: Database) -> None:
    db.run("create table a (id integer primary key, b integer null references b (id) on delete cascade)")
    db.run("create table b (id integer primary key, a integer null references a (id) on delete cascade)")
    db.run("begin; insert into a values (1, 1), (2, null); insert into b values (1, 2), (2, 1); commit")
    db.run("delete from a where id = 2")
    assert db.rows("select * from a") == db.rows("select * from b") == []


def test_renumbering_a_tree(db: Database) -> None:
    db.run("create table n (id integer primary key, up integer null references n (id) on update cascade)")
    db.run("insert into n values (1, null), (2, 1), (3, 1), (4, 3)")
    db.run("update n set id = id - 1")
    assert db.rows("select * from n") == [(0, None), (1, 0), (2, 0), (3, 2)]


def test_generated_columns_of_children_follow(db: Database) -> None:
    db.run("create table p (id integer primary key); insert into p values (1)")
    db.run(
        "create table c (id integer primary key, p integer references p (id) on update cascade,"
        " label text generated always as ('p' || p) stored)"
    )
    db.run("insert into c (id, p) values (1, 1); update p set id = 5")
    assert db.rows("select * from c") == [(1, 5, "p5")]


def test_keys_between_modules() -> None:
    db = Database("store")
    db.run("create table p (id integer primary key)")
    db.run(
        "create table c (id integer primary key, p integer references p (id) on delete cascade) using memory"
    )
    db.run("insert into p values (1), (2)")
    db.run("insert into c values (1, 1), (2, 2)")
    assert db.fails("insert into c values (3, 9)") == "CHECK constraint failed: _fk_c_p"
    assert db.rows("delete from p where id = 1 returning id, (select count(*) from c)") == [(1, 1)]
    assert db.rows("select * from c") == [(2, 2)]


def test_schema_changes_between_the_write_and_the_commit(db: Database) -> None:
    fleet(db)
    db.run("begin; insert into crew values (40, 4); alter table crew rename column ship to vessel")
    db.run("alter table crew add column nick text null; alter table crew rename to people")
    assert db.fails("commit") == "CHECK constraint failed: _fk_crew_ship"
    db.run("begin; insert into crew values (40, 4); alter table crew rename to people")
    db.run("alter table ship rename to boat; insert into boat values (4, 'Mew'); commit")
    assert db.rows("select * from people where id = 40") == [(40, 4)]


def test_a_table_dropped_before_the_commit_is_not_judged(db: Database) -> None:
    fleet(db)
    db.run("begin; insert into crew values (40, 4); drop table crew; commit")
    assert db.rows("select count(*) from ship") == [(3,)]


# --- REPLACE --------------------------------------------------------------------------------------


def test_replace_of_the_same_key_leaves_restrict_children_alone(db: Database) -> None:
    db.run(
        "create table club (id integer primary key, code text unique); insert into club values (1, 'chess')"
    )
    db.run("create table member (id integer primary key, club integer references club (id))")
    db.run("insert into member values (7, 1)")
    assert db.change("insert or replace into club values (1, 'go')") == 1
    assert db.fails("insert or replace into club values (2, 'go')") == (
        "FOREIGN KEY constraint failed: DELETE on 'club' violates RESTRICT from 'member'"
    )


def test_replace_may_not_take_a_value_away_that_children_refer_to(db: Database) -> None:
    db.run(
        "create table club (id integer primary key, code text unique); insert into club values (1, 'chess')"
    )
    db.run("create table member (id integer primary key, code text references club (code))")
    db.run("insert into member values (7, 'chess')")
    assert "violates RESTRICT" in db.fails("insert or replace into club values (1, 'go')")


def test_replace_fires_the_actions_of_a_delete(db: Database) -> None:
    fleet(db, "on delete set null")
    db.run("insert or replace into ship values (1, 'Kite II')")
    assert db.rows("select * from crew where id < 20") == [(10, None), (11, None)]


def test_do_update_fires_the_actions_of_an_update(db: Database) -> None:
    fleet(db, "on update cascade")
    db.run("insert into ship values (1, 'x') on conflict (id) do update set id = 77")
    assert db.rows("select * from crew where ship = 77") == [(10, 77), (11, 77)]


def test_the_pragma_turns_all_off(db: Database) -> None:
    fleet(db)
    db.run("pragma foreign_keys = off; delete from ship; insert into crew values (50, 99)")
    assert db.rows("select count(*) from crew") == [(5,)]


# --- a model --------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("move"), st.integers(0, 5), st.integers(0, 9)),
        st.tuples(st.just("attach"), st.integers(0, 5), st.integers(0, 5)),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.integers(0, 5), min_size=6, max_size=6), STEPS, st.booleans())
def test_no_orphans_ever(ups: list[int | None], steps: list[tuple[str, int, int]], indexed: bool) -> None:
    """Whatever is done to a forest with cascades, every row that refers has its parent."""
    db = Database()
    db.run(
        "create table n (id integer primary key,"
        " up integer null references n (id) on delete cascade on update cascade)"
    )
    if indexed:
        db.run("create index by_up on n (up)")
    db.run(
        "insert into n values "
        + ", ".join(f"({i}, {'null' if up is None else up})" for i, up in enumerate(ups))
    )
    statements = {
        "delete": "delete from n where id = ?",
        "move": "update n set id = ?2 where id = ?1",
        "attach": "update n set up = ?2 where id = ?1",
    }
    for verb, *arguments in steps:
        with suppress(IntegrityError):
            db.change(statements[verb], *arguments)
        orphans = "select * from n where up is not null and not exists (select 1 from n p where p.id = n.up)"
        assert db.rows(orphans) == []
