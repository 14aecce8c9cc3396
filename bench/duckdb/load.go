package main

import (
	"context"
	"database/sql"
	"fmt"
	"os/exec"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/work"
)

// loadPeer loads the same file as the other peers of load, by COPY into a table with a primary key.
// It is measured from the start of the process to the closed file.
var loadPeer = harness.Peer{Name: "duckdb", Act: load, Check: countLoaded,
	Command: func(env *harness.Env) (*exec.Cmd, error) { return env.Self(context.Background()) }}

const loadTable = `CREATE TABLE lineitem (l_orderkey BIGINT, l_linenumber INTEGER, l_partkey BIGINT, l_suppkey BIGINT, l_quantity DECIMAL(15,2),
	l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag VARCHAR, l_linestatus VARCHAR, l_shipdate DATE,
	l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR, PRIMARY KEY (l_orderkey, l_linenumber))`

func load(env *harness.Env) error {
	db, err := sql.Open("duckdb", env.Path("lineitem.duckdb"))
	if err != nil {
		return err
	}
	for _, q := range []string{loadTable, fmt.Sprintf("COPY lineitem (%s) FROM '%s' (FORMAT csv, DELIMITER '|', HEADER false)",
		strings.Join(inputs.LineitemFields, ", "), env.Input(work.Lineitem)), "CHECKPOINT"} {
		if _, err := db.Exec(q); err != nil {
			db.Close()
			return err
		}
	}
	return db.Close()
}

func countLoaded(env *harness.Env) (string, error) {
	db, err := sql.Open("duckdb", env.Path("lineitem.duckdb"))
	if err != nil {
		return "", err
	}
	defer db.Close()
	var n int64
	err = db.QueryRow("SELECT count(*) FROM lineitem").Scan(&n)
	return fmt.Sprintf("%d rows", n), err
}
