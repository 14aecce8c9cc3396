// Package load fills a table from a file of rows: CSV or JSON Lines, or from record batches.
//
// One goroutine reads and parses records into vectors; another commits them in write batches of up
// to Options.Rows rows or 4 MiB. Each batch is atomic. A malformed record or an existing key ends
// the load before the batch with that record; with Options.SkipBad such records are set aside
// instead.
//
// Batches are committed without a sync. The rows that Run reports are durable when it returns.
package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/schema"
)

// Format is a format of input.
type Format uint8

// The formats.
const (
	CSV Format = iota + 1
	JSONL
	Batches // Options.Batches instead of text
)

// Options are the options of a load.
type Options struct {
	Store *oribi.Store
	Table *oribi.Table
	Mode  oribi.Op // OpInsert, OpUpsert or OpInsertIgnore
	Rows  int      // maximum rows of a batch

	CellLimit int // maximum bytes of a cell in the store; 0 means 64 KiB

	Name   string // of the input, for messages
	Format Format
	File   bool // the input never blocks: it may be read far ahead of the commits

	// Of CSV and JSON: only rows for which it is true are loaded; nil = all. Its columns are those
	// of the table.
	Where *batch.Filter

	// Of CSV: the delimiter, and the names of the columns; without a header and names, they are all
	// columns of the table.
	Delimiter byte
	Names     csvin.Names

	// Of CSV and JSON: the columns that are loaded; nil = all.
	Columns []string

	// Of JSON: string columns accept numbers, true and false as text. Objects and arrays are always
	// accepted.
	Scalars bool

	// Of Batches: the rows, and the columns of each batch. The loader reads the batches in another
	// goroutine, which ends before Run does.
	Batches iter.Seq2[*batch.RecordBatch, error]
	Fields  []schema.Column

	SkipBad  io.Writer        // receives bad records and those with existing keys; nil = they end the load
	Progress func(rows int64) // called periodically with the number of committed rows; may be nil
}

// Result is the result of a load.
type Result struct {
	Rows     int64 // committed
	There    int64 // rows with existing keys, ignored by OpInsertIgnore
	Skipped  int64 // records written to SkipBad
	FirstBad error // reason for the first of them
}

// Maximum bytes of a batch; a single row may be larger.
const maxBatchBytes = 4 << 20

// Run loads the rows of in, or of o.Batches.
//
// Errors: *apply.LineError for a bad record, a duplicate key and an input that cannot be read;
// errors of o.Batches; ctx.Err(), between two batches; errors of the store. With all of them the
// result counts the rows in the table, unless these could not be made durable: then Rows is −1.
func Run(ctx context.Context, in io.Reader, o Options) (Result, error) {
	limits := ingestLimits{}
	if o.File {
		limits = usualIngest
	}
	return run(ctx, in, o, limits)
}

func run(ctx context.Context, in io.Reader, o Options, limits ingestLimits) (Result, error) {
	l := &loader{o: &o, limits: limits, batch: o.Store.NewBatch(), ready: make(chan *rows, rowsAhead),
		spare: make(chan *rows, rowsAhead+2), stop: make(chan struct{})}
	var parsing sync.WaitGroup
	parsing.Go(func() { l.parse(in) })
	defer func() {
		close(l.stop)
		if o.Format == Batches { // text may come from a pipe, and its reader not end
			parsing.Wait()
		}
	}()
	err := l.commitAll(ctx)
	// An empty batch is published after all others, and durable with them.
	l.batch.Reset()
	if _, failed := l.batch.Commit(context.WithoutCancel(ctx)); failed != nil {
		l.result.Rows = -1
		return l.result, errors.Join(err, failed)
	}
	return l.result, err
}

// rowsAhead is the maximum number of parsed batches that wait to be committed.
const rowsAhead = 3

type loader struct {
	o      *Options
	limits ingestLimits
	batch  *oribi.Batch
	result Result

	queue []*rows // read, but not yet committed
	end   error   // result after them; nil = more batches

	ready chan *rows
	spare chan *rows // for reuse
	stop  chan struct{}
}

// source reads records.
type source interface {
	// appends a row. Errors: io.EOF; *badRow, after which the next call continues; others end the
	// input
	next(dst *rows) error
	line() int   // the line on which the record last read begins
	raw() []byte // the bytes of the record last read, even if it is bad
}

// columnSource is a source that can append several rows at once.
type columnSource interface {
	source
	// appends some rows, at most most of them; false if it appends none, since next must read the
	// next one
	appendRows(dst *rows, most int) bool
}

// badRow is the error for a record that is not a valid row.
type badRow struct{ cause error }

func (b *badRow) Error() string { return b.cause.Error() }

func (l *loader) at(line int, err error) *apply.LineError {
	return &apply.LineError{Name: l.o.Name, Line: line, Row: l.o.Format == Batches, Err: err}
}

// parse parses the input into rows until it ends or the load is canceled.
func (l *loader) parse(in io.Reader) {
	m := newMaker(l.o.Table.Schema(), l.o)
	var s source
	switch l.o.Format {
	case JSONL:
		s = jsonRows(in, m, l.o)
	case Batches:
		b, err := batchRows(m, l.o)
		if err != nil {
			l.hand(&rows{err: fmt.Errorf("%s: %w", l.o.Name, err)})
			return
		}
		defer b.close()
		s = b
	default:
		c, err := csvRows(in, m, l.o)
		if s = c; err != nil {
			l.hand(&rows{err: l.at(s.line(), err)})
			return
		}
	}
	for {
		var r *rows
		select {
		case r = <-l.spare:
			r.reset()
		default:
			r = newRows(m.schema)
		}
		l.fill(r, s)
		if !l.hand(r) || r.err != nil {
			return
		}
	}
}

// hand passes rows to the committing goroutine. It returns false if the load is canceled.
func (l *loader) hand(r *rows) bool {
	select {
	case l.ready <- r:
		return true
	case <-l.stop:
		return false
	}
}

// fill reads the rows of one batch.
func (l *loader) fill(r *rows, s source) {
	columns, _ := s.(columnSource)
	for r.len() < l.o.Rows && len(r.bad) < l.o.Rows && r.bytes < maxBatchBytes {
		if columns != nil && columns.appendRows(r, l.o.Rows-r.len()) {
			continue
		}
		err := s.next(r)
		if err == nil {
			continue
		}
		bad, ok := errors.AsType[*badRow](err)
		switch {
		case err == io.EOF:
			r.err = err
		case !ok && l.o.Format == Batches:
			r.err = err // it says where
		case !ok:
			r.err = l.at(s.line(), err)
		case l.o.SkipBad == nil:
			r.err = l.at(s.line(), bad.cause)
		default:
			raw := appendLine(nil, s.raw())
			r.bytes += len(raw) + rowOverhead
			r.bad = append(r.bad, badRecord{raw: raw, err: l.at(s.line(), bad.cause)})
			continue
		}
		return
	}
}

// commitAll commits the batches that parse produces.
func (l *loader) commitAll(ctx context.Context) error {
	if err := l.ingest(ctx); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := l.next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.commit(ctx, r); err != nil {
			return err
		}
		l.give(r)
	}
}

// commit commits rows as one batch, and writes the refused records to SkipBad.
func (l *loader) commit(ctx context.Context, r *rows) error {
	_, err := l.insert(ctx, r, false)
	if l.o.SkipBad != nil {
		err = l.retry(ctx, r, err)
	}
	if err == nil {
		l.tell(l.result.Rows)
	}
	return err
}

// insert commits rows as they are, or, if partial, without those that the store refuses when it commits them.
// Errors: *apply.LineError around a *rowFault for a row that the store refuses; others.
func (l *loader) insert(ctx context.Context, r *rows, partial bool) (refused map[int]error, err error) {
	if r.len() == 0 {
		return nil, nil
	}
	b, t := l.batch, l.o.Table
	b.Reset()
	// Inserts that may skip existing keys are inserts that count these.
	mode, skip := l.o.Mode, l.o.Mode == oribi.OpInsertIgnore
	if skip {
		mode = oribi.OpInsert
	}
	if r.varied {
		cells := make([][]byte, len(r.vectors))
		for i := range r.len() {
			for c, v := range r.vectors {
				cells[c] = v.Cell(i)
			}
			b.Cells(mode, t, cells, r.set[i*len(cells):(i+1)*len(cells)])
		}
	} else {
		b.Vectors(mode, t, r.columns())
	}
	switch err = b.Err(); {
	case err != nil:
	case skip || partial:
		_, err = b.CommitPartial(ctx, oribi.NoSync)
	default:
		_, err = b.Commit(ctx, oribi.NoSync)
	}
	committed, left := err == nil, b.Refused()
	refused = map[int]error{}
	for _, row := range left {
		switch {
		case skip && errors.Is(row, oribi.ErrKeyExists):
			l.result.There++
		case partial:
			refused[row.Row] = l.rowCause(row)
		case err == nil:
			err = row
		}
	}
	if committed {
		l.result.Rows += int64(r.len() - len(left))
	}
	if row, ok := errors.AsType[*oribi.RowError](err); ok && row.Row < r.len() {
		err = l.at(r.places[row.Row].line, &rowFault{row.Row, l.rowCause(row)})
	}
	return refused, err
}

// rowFault is the reason why the store refuses a row.
type rowFault struct {
	row   int // of the batch
	cause error
}

func (f *rowFault) Error() string { return f.cause.Error() }
func (f *rowFault) Unwrap() error { return f.cause }

// rowCause returns a row error without its position. An error of the whole row names the key
// columns, or the index.
func (l *loader) rowCause(row *oribi.RowError) error {
	if row.Column != "" {
		return columnError(row.Column, row.Cause)
	}
	err := row.Cause
	if errors.Is(err, oribi.ErrNotUnique) {
		return err // it names the columns' index
	}
	if row.Key != "" {
		err = fmt.Errorf("key %s: %w", row.Key, err)
	}
	s := l.o.Table.Schema()
	names := fmt.Sprintf("column %q", s.Columns[0].Name)
	for i := 1; i < s.Keys; i++ {
		names += fmt.Sprintf(", %q", s.Columns[i].Name)
	}
	return fmt.Errorf("%s: %w", names, err)
}
