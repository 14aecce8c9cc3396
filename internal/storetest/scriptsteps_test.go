package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// step runs the commands of a line, which make one write batch if they are operations.
func (s *scripted) step(line string) error {
	commands := splitCommand(line)
	if _, ok := operations[commands[0][0]]; ok {
		if s.batch == nil && s.tx == nil {
			b := s.store.NewBatch()
			s.fill(b, commands)
			return s.commit(b, commands)
		}
	}
	for _, words := range commands {
		a := parseArguments(words[1:])
		var err error
		if _, ok := operations[words[0]]; ok && s.tx != nil {
			err = s.txOperation(words[0], &a)
		} else if ok {
			before := s.batch.Err()
			if s.fill(s.batch, [][]string{words}); before == nil {
				err = s.batch.Err()
			}
		} else if do := scriptSteps[words[0]]; do != nil {
			err = do(s, &a)
		} else {
			s.t.Fatalf("%s: no such command", line)
		}
		s.fail(err)
	}
	return nil
}

// ctx returns the context of a command: it is canceled if the command says so.
func (s *scripted) ctx(a *arguments) context.Context {
	ctx, cancel := context.WithCancel(s.t.Context())
	if a.has("canceled") {
		cancel()
	} else {
		s.t.Cleanup(cancel)
	}
	return ctx
}

// operations are the commands that are operations of a write batch.
var operations = map[string]func(*oribi.Batch, *oribi.Table, oribi.Row){"insert": (*oribi.Batch).Insert,
	"upsert": (*oribi.Batch).Upsert, "update": (*oribi.Batch).Update, "delete": (*oribi.Batch).Delete,
	"insert_ignore": (*oribi.Batch).InsertIgnore, "upsert_ignore": (*oribi.Batch).UpsertIgnore,
	"update_ignore": (*oribi.Batch).UpdateIgnore, "delete_ignore": (*oribi.Batch).DeleteIgnore, "if": nil,
	"ifabsent": nil, "updateif": nil, "deleteif": nil, "partial": nil, "nosync": nil, "canceled": nil}

// fill adds operations to a write batch. Each is of the current table, or of the table after "on".
func (s *scripted) fill(b *oribi.Batch, commands [][]string) {
	for _, words := range commands {
		a := parseArguments(words[1:])
		table := s.table
		if len(a.words) > 1 && a.words[0] == "on" {
			table = must.Get(s.store.Table(a.words[1]))(s.t)
		}
		columns := b.Schema(table)
		if columns == nil {
			columns = table.Schema()
		}
		var tests []oribi.Predicate
		pairs := a.pairs[:0:0]
		for _, p := range a.pairs {
			if p[0] == "where" {
				tests = append(tests, must.Get(oribi.ParsePredicate(columns.Columns, p[1]))(s.t))
			} else {
				pairs = append(pairs, p)
			}
		}
		op, isOp := operations[words[0]]
		if !isOp {
			s.t.Fatalf("%s is no operation", words[0])
		}
		for _, row := range s.rows(columns, pairs) {
			switch words[0] {
			case "if":
				b.If(table, row, tests...)
			case "ifabsent":
				b.IfAbsent(table, row)
			case "updateif":
				b.UpdateIf(table, row, tests...)
			case "deleteif":
				b.DeleteIf(table, row, tests...)
			case "partial", "nosync", "canceled":
			default:
				op(b, table, row)
			}
		}
	}
}

// commit commits a write batch with the options among the commands.
func (s *scripted) commit(b *oribi.Batch, commands [][]string) (err error) {
	var all arguments
	for _, words := range commands {
		all.words = append(all.words, words[0])
	}
	commit := b.Commit
	if all.has("partial") {
		commit = b.CommitPartial
	}
	var options []oribi.CommitOption
	if all.has("nosync") {
		options = append(options, oribi.NoSync)
	}
	ts, err := commit(s.ctx(&all), options...)
	if err != nil {
		return err
	}
	s.returned(ts)
	for _, r := range b.Refused() {
		s.fail(r)
	}
	for _, a := range b.Assigned() {
		s.print("row %d has %d", a.Row, a.Value)
	}
	return nil
}

// returned prints a timestamp that a call returned, if it has a number that scripts can print.
func (s *scripted) returned(ts mvcc.Timestamp) {
	if s.last = ts; s.logical {
		s.print("ts %d", uint64(ts))
	}
}

func (s *scripted) txOperation(name string, a *arguments) error {
	table := s.table
	if len(a.words) > 1 && a.words[0] == "on" {
		table = must.Get(s.store.Table(a.words[1]))(s.t)
	}
	do := map[string]func(*oribi.Tx, *oribi.Table, oribi.Row) error{"insert": (*oribi.Tx).Insert,
		"upsert": (*oribi.Tx).Upsert, "update": (*oribi.Tx).Update, "delete": (*oribi.Tx).Delete}[name]
	for _, row := range s.rows(table.Schema(), a.pairs) {
		if err := do(s.tx, table, row); err != nil {
			return err
		}
	}
	return nil
}

// options returns the options of a read that the arguments give.
func (s *scripted) readOptions(a *arguments) (options []any) {
	for _, p := range a.pairs {
		switch p[0] {
		case "at":
			options = append(options, oribi.AsOf(s.timestamp(p[1])))
		case "time":
			at := must.Get(time.Parse(time.RFC3339Nano, p[1]))(s.t)
			options = append(options, oribi.AsOfTime(at))
		case "snapshot":
			options = append(options, oribi.At(s.named[p[1]].(*oribi.Snapshot)))
		case "columns":
			options = append(options, oribi.Columns(strings.FieldsFunc(p[1], func(c rune) bool { return c == ',' })...))
		case "where":
			options = append(options, oribi.Where(must.Get(oribi.ParsePredicate(s.table.Schema().Columns, p[1]))(s.t)))
		case "from":
			options = append(options, oribi.From(s.key(p[1])))
		case "to":
			options = append(options, oribi.To(s.key(p[1])))
		case "prefix":
			options = append(options, oribi.Prefix(s.key(p[1])))
		case "limit":
			options = append(options, oribi.Limit(must.Get(strconv.ParseInt(p[1], 10, 64))(s.t)))
		case "bytes":
			options = append(options, oribi.PieceBytes(must.Get(strconv.ParseInt(p[1], 10, 64))(s.t)))
		case "by":
			options = append(options, oribi.GroupBy(strings.Split(p[1], ",")...))
		}
	}
	for _, w := range a.words {
		if o := map[string]any{"desc": oribi.Desc(), "any": oribi.AnyOrder(), "pieces": oribi.InPieces(),
			"nosync": oribi.NoSync, "latest": oribi.Latest()}[w]; o != nil {
			options = append(options, o)
		}
	}
	return options
}

// optionsAs returns the options as the options of a call.
func optionsAs[T any](s *scripted, a *arguments) (out []T) {
	for _, o := range s.readOptions(a) {
		v, ok := o.(T)
		if !ok {
			s.t.Fatalf("%v: an option of another call", *a)
		}
		out = append(out, v)
	}
	return out
}

// keyRow returns the pairs that name key columns as a row, and takes them out of the arguments.
func (s *scripted) keyRow(a *arguments) oribi.Row {
	columns := s.table.Schema()
	var key, rest [][2]string
	for _, p := range a.pairs {
		if i := columns.Index(p[0]); i >= 0 && i < columns.Keys {
			key = append(key, p)
		} else {
			rest = append(rest, p)
		}
	}
	a.pairs = rest
	return s.rows(columns, key)[0]
}

func (s *scripted) get(a *arguments) error {
	key := s.keyRow(a)
	if s.batch != nil {
		row, err := s.batch.Get(s.ctx(a), s.table, key, optionsAs[oribi.ColumnsOption](s, a)...)
		if err == nil {
			s.print("%v", row)
		}
		return err
	}
	var columns []schema.Column
	var cells [][]byte
	var err error
	if s.tx != nil {
		columns, cells, err = s.tx.GetCells(s.table, key, optionsAs[oribi.ColumnsOption](s, a)...)
	} else {
		columns, cells, err = s.table.GetCells(s.ctx(a), key, optionsAs[oribi.GetOption](s, a)...)
	}
	if err == nil {
		s.print("%s", rowText(columns, cells))
	}
	return err
}

// has prints whether Has finds a row.
func (s *scripted) has(a *arguments) (err error) {
	key, found := s.keyRow(a), false
	if s.tx != nil {
		found, err = s.tx.Has(s.table, key)
	} else {
		found, err = s.table.Has(s.ctx(a), key, optionsAs[oribi.ReadOption](s, a)...)
	}
	if err == nil {
		s.print("%t", found)
	}
	return err
}

// many reads the rows of the keys that are words.
func (s *scripted) many(a *arguments) error {
	var keys []any
	for _, w := range a.words {
		keys = append(keys, s.key(w))
	}
	columns, rows, err := s.table.GetManyCells(s.ctx(a), keys, optionsAs[oribi.GetOption](s, a)...)
	if err != nil {
		return err
	}
	var texts []string
	for _, cells := range rows {
		texts = append(texts, rowText(columns, cells))
	}
	s.list(texts, "no rows")
	return nil
}

// scan prints rows. If the scan is of all columns, in order and without a limit, then Count and
// Aggregate have to count as many rows; if it is of all rows, each is read by its key, too.
func (s *scripted) scan(a *arguments) error {
	var sc *oribi.Scan
	if s.tx != nil {
		sc = s.tx.Scan(s.table, optionsAs[oribi.RowsOption](s, a)...)
	} else {
		sc = s.table.Scan(s.ctx(a), optionsAs[oribi.ScanOption](s, a)...)
	}
	columns, err := sc.Columns()
	if err != nil {
		return err
	}
	var texts []string
	var keys []oribi.Key
	keyed := len(columns) == len(s.table.Schema().Columns)
	for cells, err := range sc.Cells() {
		if err != nil {
			s.list(texts, "no rows")
			return err
		}
		texts = append(texts, rowText(columns, cells))
		var key oribi.Key
		for i := range s.table.Schema().Keys {
			if keyed {
				key = append(key, oribi.Cell(append([]byte{}, cells[i]...)))
			}
		}
		keys = append(keys, key)
	}
	s.list(texts, "no rows")
	if s.tx == nil && keyed {
		s.compare(a, texts, keys)
	}
	return nil
}

// compare compares the rows of a scan with the results of other reads.
func (s *scripted) compare(a *arguments, texts []string, keys []oribi.Key) {
	all := true
	for _, p := range a.pairs {
		if p[0] == "limit" {
			return
		}
		all = all && (p[0] == "at" || p[0] == "snapshot" || p[0] == "time")
	}
	b := arguments{pairs: a.pairs}
	if a.has("latest") {
		b.words = []string{"latest"}
	}
	n := must.Get(s.table.Count(s.t.Context(), optionsAs[oribi.CountOption](s, &b)...))(s.t)
	sums := must.Get(s.table.Aggregate(s.t.Context(), []oribi.Aggregate{oribi.CountRows()},
		optionsAs[oribi.AggregateOption](s, &b)...))(s.t)
	if counted := sums.Groups[0].Values[0].Any(); int(n) != len(texts) || counted != n {
		s.print("Count returns %d, Aggregate %v", n, counted)
	}
	for i, key := range keys[:min(len(keys), 50)] {
		if !all {
			break
		}
		found, err := s.table.Has(s.t.Context(), key, optionsAs[oribi.ReadOption](s, &b)...)
		columns, cells, getErr := s.table.GetCells(s.t.Context(), key, optionsAs[oribi.GetOption](s, &b)...)
		if text := rowText(columns, cells); text != texts[i] || !found || errors.Join(err, getErr) != nil {
			s.print("Get returns %s, Has %t, %v", text, found, errors.Join(err, getErr))
		}
	}
}

func (s *scripted) count(a *arguments) error {
	n, err := s.table.Count(s.ctx(a), optionsAs[oribi.CountOption](s, a)...)
	if err == nil {
		s.print("%d rows", n)
	}
	return err
}

// aggregate prints one line for each group. Its words are count, count(c), sum(c), avg(c), min(c),
// max(c).
func (s *scripted) aggregate(a *arguments) error {
	var list []oribi.Aggregate
	for _, w := range a.words {
		name, column, _ := strings.Cut(strings.TrimSuffix(w, ")"), "(")
		of := map[string]func(string) oribi.Aggregate{"count": oribi.CountOf, "sum": oribi.SumOf, "avg": oribi.AvgOf,
			"min": oribi.MinOf, "max": oribi.MaxOf}[name]
		if column == "" {
			list = append(list, oribi.CountRows())
		} else {
			list = append(list, of(column))
		}
	}
	a.words = nil
	r, err := s.table.Aggregate(s.ctx(a), list, optionsAs[oribi.AggregateOption](s, a)...)
	if err != nil {
		return err
	}
	var texts []string
	for _, g := range r.Groups {
		texts = append(texts, strings.Trim(fmt.Sprint(g.Key), "[]")+fmt.Sprint(g.Values))
	}
	s.list(texts, "no groups")
	return nil
}

func (s *scripted) history(a *arguments) error {
	key := s.keyRow(a)
	var texts []string
	for v, err := range s.table.History(s.ctx(a), key, optionsAs[oribi.GetOption](s, a)...) {
		if err != nil {
			return err
		}
		texts = append(texts, fmt.Sprintf("%v at %s: %s", v.Kind, s.timeText(v.Timestamp), rowText(v.Columns, v.Cells)))
	}
	s.list(texts, "no versions")
	return nil
}

func differenceText(d *oribi.Difference) string {
	return fmt.Sprintf("%v %s: %s -> %s", d.Kind, rowText(d.KeyColumns, d.Key), rowText(d.Columns, d.Before),
		rowText(d.Columns, d.After))
}

// diff prints the differences between two timestamps, which are its first words.
func (s *scripted) diff(a *arguments) error {
	from, to := s.timestamp(a.words[0]), s.timestamp(a.words[1])
	var texts []string
	for d, err := range s.table.Diff(s.ctx(a), from, to, optionsAs[oribi.RowsOption](s, a)...) {
		if err != nil {
			return err
		}
		texts = append(texts, differenceText(&d))
	}
	s.list(texts, "no differences")
	return nil
}

// subscribe prints the changes of all write batches after a timestamp, of all tables, or of those
// that its other words name.
func (s *scripted) subscribe(a *arguments) error {
	from := s.timestamp(a.words[0])
	var tables []*oribi.Table
	for _, name := range a.words[1:] {
		tables = append(tables, must.Get(s.store.Table(name))(s.t))
	}
	until := mvcc.Max
	for _, p := range a.pairs {
		if p[0] == "until" {
			until = s.timestamp(p[1])
		}
	}
	none := len(s.out)
	for b, err := range s.store.Subscribe(s.ctx(a), from, until, tables...) {
		if err != nil {
			return err
		}
		for _, c := range b.Changes {
			s.print("%s: %s: %s", s.timeText(b.Timestamp), c.Table.Name(), differenceText(&c.Difference))
		}
	}
	if len(s.out) == none {
		s.print("no changes")
	}
	return nil
}

// ingest ingests the rows of its pairs.
func (s *scripted) ingest(a *arguments) error {
	columns := s.table.Schema()
	rows := s.rows(columns, a.pairs)
	var vectors []*batch.Vector
	for i := range columns.Columns {
		c := &columns.Columns[i]
		if _, set := rows[0][c.Name]; !set {
			vectors = append(vectors, nil)
			continue
		}
		v := batch.NewVector(c.Type, len(rows))
		for k, row := range rows {
			cell, _ := row[c.Name].(oribi.Cell)
			v.SetCell(k, cell)
		}
		vectors = append(vectors, v)
	}
	var source iter.Seq2[[]*batch.Vector, error] = func(yield func([]*batch.Vector, error) bool) { yield(vectors, nil) }
	ts, n, err := s.table.Ingest(s.ctx(a), source)
	if err == nil {
		s.print("%d rows", n)
		s.returned(ts)
	}
	return err
}
