package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/duckdb/duckdb-go/v2"

	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
)

// loader loads rows into lineitem by one of DuckDB's methods.
type loader func(conn *duckdb.Conn, rows iter.Seq2[*inputs.Item, error]) error

// newDriver returns DuckDB with the given number of threads. Every commit is synced; DuckDB has no
// other mode.
func newDriver(name string, threads int, load loader) peer.Driver {
	return peer.Driver{Name: name, Lineitem: func(dir string) (peer.Lineitem, error) {
		db, err := sql.Open("duckdb", filepath.Join(dir, "lineitem.duckdb"))
		if err != nil {
			return nil, err
		}
		s, err := peer.OpenSQL(db, "", fmt.Sprintf("SET threads = %d", threads),
			fmt.Sprintf("SET memory_limit = '%dMiB'", memoryLimit>>20),
			"CREATE TEMP TABLE staged_keys (k BIGINT, n INTEGER)",
			strings.Replace(peer.SQLTable(""), "TABLE IF NOT EXISTS lineitem", "TEMP TABLE staged", 1))
		if err != nil {
			return nil, err
		}
		s.FinishWith = []string{"CHECKPOINT"}
		s.LoadWith = func(rows iter.Seq2[*inputs.Item, error]) error {
			return s.Conn.Raw(func(c any) error { return load(c.(*duckdb.Conn), rows) })
		}
		s.UpsertWith = func(items []inputs.Item) error { return upsert(s, items) }
		s.UpdateWith = func(keys []inputs.Key, tax int64) error { return update(s, keys, tax) }
		return s, nil
	}}
}

// memoryLimit is four times the cache of the other peers: DuckDB's limit includes everything, also
// the index of the primary key, which it cannot spill.
const memoryLimit = 4 * peer.CacheBytes

// upsert appends rows to a temporary table, and copies them to lineitem in one statement.
func upsert(s *peer.SQL, items []inputs.Item) error {
	err := s.Conn.Raw(func(c any) error {
		return appendTo(c.(*duckdb.Conn), "temp", "staged", func(yield func(*inputs.Item, error) bool) {
			for i := range items {
				if !yield(&items[i], nil) {
					return
				}
			}
		})
	})
	if err != nil {
		return err
	}
	return s.Do("INSERT OR REPLACE INTO lineitem SELECT * FROM staged", "DELETE FROM staged")
}

// update does the same with keys.
func update(s *peer.SQL, keys []inputs.Key, tax int64) error {
	err := s.Conn.Raw(func(c any) error {
		a, err := duckdb.NewAppender(c.(*duckdb.Conn), "temp", "main", "staged_keys")
		if err != nil {
			return err
		}
		for _, k := range keys {
			if err = a.AppendRow(k.OrderKey, k.LineNumber); err != nil {
				break
			}
		}
		if closed := a.Close(); err == nil {
			err = closed
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.Do(fmt.Sprintf("UPDATE lineitem SET l_tax = %d FROM staged_keys WHERE l_orderkey = k AND l_linenumber = n",
		tax), "DELETE FROM staged_keys")
}

// appendRows uses DuckDB's appender.
func appendRows(conn *duckdb.Conn, rows iter.Seq2[*inputs.Item, error]) error {
	return appendTo(conn, "", "lineitem", rows)
}

func appendTo(conn *duckdb.Conn, catalog, table string, rows iter.Seq2[*inputs.Item, error]) error {
	a, err := duckdb.NewAppender(conn, catalog, "main", table)
	if err != nil {
		return err
	}
	var row []driver.Value
	for it, e := range rows {
		if err = e; err == nil {
			row = append(row[:0], it.OrderKey, it.LineNumber, it.PartKey, it.SuppKey, it.Quantity,
				it.ExtendedPrice, it.Discount, it.Tax,
				it.ReturnFlag, it.LineStatus, it.ShipDate, it.CommitDate, it.ReceiptDate,
				it.ShipInstruct, it.ShipMode, it.Comment)
			err = a.AppendRow(row...)
		}
		if err != nil {
			break
		}
	}
	if closed := a.Close(); err == nil {
		err = closed
	}
	return err
}

// insertArrow registers a stream of Arrow record batches as a view, and inserts from it.
func insertArrow(conn *duckdb.Conn, rows iter.Seq2[*inputs.Item, error]) error {
	a, err := duckdb.NewArrowFromConn(conn)
	if err != nil {
		return err
	}
	s := newStream(rows)
	defer s.end()
	release, err := a.RegisterView(s, "incoming")
	if err != nil {
		return err
	}
	defer release()
	if _, err = conn.ExecContext(context.Background(), "INSERT INTO lineitem SELECT * FROM incoming", nil); err != nil {
		return err
	}
	return s.err
}

var fields = func() *arrow.Schema {
	long, short, text := arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String
	types := []arrow.DataType{long, short, long, long, long, long, long, long, text, text, short,
		short, short, text, text, text}
	names := []string{"l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice",
		"l_discount", "l_tax", "l_returnflag",
		"l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode", "l_comment"}
	var out []arrow.Field
	for i := range names {
		out = append(out, arrow.Field{Name: names[i], Type: types[i]})
	}
	return arrow.NewSchema(out, nil)
}()

// stream provides rows as record batches of streamRows rows. A separate goroutine makes them, since
// DuckDB requests them from any thread.
type stream struct {
	records chan arrow.Record
	stop    chan struct{}
	b       *array.RecordBuilder
	record  arrow.Record
	err     error // valid when records is closed
}

const streamRows = 4096

func newStream(rows iter.Seq2[*inputs.Item, error]) *stream {
	s := &stream{b: array.NewRecordBuilder(memory.DefaultAllocator, fields),
		records: make(chan arrow.Record), stop: make(chan struct{})}
	go func() {
		defer close(s.records)
		n := 0
		for it, err := range rows {
			if err != nil {
				s.err = err
				return
			}
			s.add(it)
			if n++; n%streamRows == 0 && !s.send() {
				return
			}
		}
		if n%streamRows != 0 {
			s.send()
		}
	}()
	return s
}

// send passes on a record batch. It returns false once the reader has stopped.
func (s *stream) send() bool {
	select {
	case s.records <- s.b.NewRecord():
		return true
	case <-s.stop:
		return false
	}
}

// end waits until the goroutine has ended.
func (s *stream) end() {
	close(s.stop)
	for range s.records {
	}
}

func (s *stream) Retain()                        {}
func (s *stream) Release()                       {}
func (s *stream) Schema() *arrow.Schema          { return fields }
func (s *stream) Err() error                     { return nil }
func (s *stream) Record() arrow.Record           { return s.record }
func (s *stream) RecordBatch() arrow.RecordBatch { return s.record }

// Next returns the next record batch.
func (s *stream) Next() (ok bool) {
	if s.record != nil {
		s.record.Release()
	}
	s.record, ok = <-s.records
	return ok
}

func (s *stream) add(it *inputs.Item) {
	long := func(c int, v int64) { s.b.Field(c).(*array.Int64Builder).Append(v) }
	short := func(c int, v int32) { s.b.Field(c).(*array.Int32Builder).Append(v) }
	text := func(c int, v string) { s.b.Field(c).(*array.StringBuilder).Append(v) }
	long(0, it.OrderKey)
	short(1, it.LineNumber)
	long(2, it.PartKey)
	long(3, it.SuppKey)
	long(4, it.Quantity)
	long(5, it.ExtendedPrice)
	long(6, it.Discount)
	long(7, it.Tax)
	text(8, it.ReturnFlag)
	text(9, it.LineStatus)
	short(10, it.ShipDate)
	short(11, it.CommitDate)
	short(12, it.ReceiptDate)
	text(13, it.ShipInstruct)
	text(14, it.ShipMode)
	text(15, it.Comment)
}
