package main

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/work"
)

// peer is DuckDB in scan-sum: one thread, a table in a file.
var peer = harness.Peer{Name: "duckdb", Prepare: prepare, Measure: measure}

const createTable = `CREATE TABLE lineitem (l_orderkey BIGINT, l_linenumber INTEGER, l_partkey BIGINT, l_suppkey BIGINT, l_quantity BIGINT,
	l_extendedprice BIGINT, l_discount BIGINT, l_tax BIGINT, l_returnflag VARCHAR, l_linestatus VARCHAR, l_shipdate INTEGER,
	l_commitdate INTEGER, l_receiptdate INTEGER, l_shipinstruct VARCHAR, l_shipmode VARCHAR, l_comment VARCHAR)`

// prepare makes a database file of lineitem, decimals and dates as integers.
func prepare(env *harness.Env) error {
	connector, err := duckdb.NewConnector(env.Path("lineitem.duckdb"), nil)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if _, err := db.Exec(createTable); err != nil {
		return err
	}
	conn, err := connector.Connect(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close()
	a, err := duckdb.NewAppenderFromConn(conn, "", "lineitem")
	if err != nil {
		return err
	}
	err = work.EachChunk(env, 1000, func(items []inputs.Item) error {
		for i := range items {
			it := &items[i]
			row := []driver.Value{it.OrderKey, it.LineNumber, it.PartKey, it.SuppKey, it.Quantity, it.ExtendedPrice, it.Discount, it.Tax,
				it.ReturnFlag, it.LineStatus, it.ShipDate, it.CommitDate, it.ReceiptDate, it.ShipInstruct, it.ShipMode, it.Comment}
			if err := a.AppendRow(row...); err != nil {
				return err
			}
		}
		return nil
	})
	if closed := a.Close(); err == nil {
		err = closed
	}
	if err == nil {
		_, err = db.Exec("CHECKPOINT")
	}
	return err
}

func measure(env *harness.Env) (harness.Measurement, error) {
	db, err := sql.Open("duckdb", env.Path("lineitem.duckdb"))
	if err != nil {
		return harness.Measurement{}, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("SET threads = 1"); err != nil {
		return harness.Measurement{}, err
	}
	return work.SumPasses(env, func() (sum, rows int64, err error) {
		err = db.QueryRow("SELECT sum("+work.SumColumn+")::BIGINT, count(*) FROM lineitem").Scan(&sum, &rows)
		return sum, rows, err
	})
}
