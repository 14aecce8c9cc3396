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
var loadPeer = harness.Peer{Name: "duckdb", Command: self, Check: countLoaded, Act: func(env *harness.Env) error {
	return load(env, fmt.Sprintf("COPY lineitem (%s) FROM '%s' (FORMAT csv, DELIMITER '|', HEADER false)",
		strings.Join(inputs.LineitemFields, ", "), env.Input(work.Lineitem)))
}}

// loadParquetPeer does the same with the Parquet file of load-parquet.
var loadParquetPeer = harness.Peer{Name: "duckdb", Command: self, Check: sumLoaded, Act: func(env *harness.Env) error {
	return load(env,
		fmt.Sprintf("INSERT INTO lineitem BY NAME SELECT * FROM read_parquet('%s')", work.ParquetInput(env)))
}}

func self(env *harness.Env) (*exec.Cmd, error) { return env.Self(context.Background()) }

const loadTable = `CREATE TABLE lineitem (l_orderkey BIGINT, l_linenumber INTEGER, l_partkey BIGINT, l_suppkey BIGINT, l_quantity DECIMAL(15,2),
	l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag VARCHAR, l_linestatus VARCHAR, l_shipdate DATE,
	l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR, PRIMARY KEY (l_orderkey, l_linenumber))`

// load creates lineitem and fills it by a statement.
func load(env *harness.Env, fill string) error {
	db, err := sql.Open("duckdb", env.Path("lineitem.duckdb"))
	if err != nil {
		return err
	}
	for _, q := range []string{loadTable, fill, "CHECKPOINT"} {
		if _, err := db.Exec(q); err != nil {
			db.Close()
			return err
		}
	}
	return db.Close()
}

func countLoaded(env *harness.Env) (string, error) {
	n, err := sums(env, "count(*)")
	return fmt.Sprintf("%d rows", n[0]), err
}

func sumLoaded(env *harness.Env) (string, error) {
	n, err := sums(env, "count(*)", "sum(l_orderkey)", "sum(l_extendedprice) * 100",
		"sum(l_shipdate - DATE '1970-01-01')", "sum(strlen(l_comment))")
	return work.LoadedSums(n[0], n[1], n[2], n[3], n[4]), err
}

// sums returns up to five integers that are computed over lineitem.
func sums(env *harness.Env, what ...string) (n [5]int64, err error) {
	db, err := sql.Open("duckdb", env.Path("lineitem.duckdb"))
	if err != nil {
		return n, err
	}
	defer db.Close()
	var casts []string
	var targets []any
	for i := range what {
		casts, targets = append(casts, "CAST("+what[i]+" AS BIGINT)"), append(targets, &n[i])
	}
	err = db.QueryRow("SELECT " + strings.Join(casts, ", ") + " FROM lineitem").Scan(targets...)
	return n, err
}
