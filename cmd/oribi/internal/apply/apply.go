// Package apply runs a file of write batches: JSON Lines, one batch per line.
//
//	{"ops":[{"op":"upsert","table":"tree","row":{"path":"a","size":1}},
//	        {"op":"delete","table":"tree","key":{"path":"b"}}]}
//
// (on one line). Lines are committed in order, each as one atomic write batch. The first line that
// fails ends the run; the lines before it remain applied. Text is parsed directly into cells,
// without a map or an any per row.
package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/jsonin"
)

// Options are the options of a run.
type Options struct {
	Name string // of the input, for messages
	// receives the timestamp of each batch, a line in one Write, before the next batch begins; may
	// be nil
	Timestamps io.Writer
	NoSync     bool // a batch counts as done when it is published, not when it is durable

	Applied func(batches int64) // called after each batch with the number of batches done; may be nil
}

// LineError is the error that ended a run, and the line of the input.
type LineError struct {
	Name string
	Line int  // from 1
	Row  bool // Line counts rows of an input without lines
	Err  error
}

func (e *LineError) Error() string {
	if e.Row {
		return fmt.Sprintf("%s: row %d: %v", e.Name, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }

// Run applies the lines of in to store. Errors: *LineError; ctx.Err(); errors of writing
// timestamps. If ctx ends, Run returns between two batches, without waiting for more input.
func Run(ctx context.Context, store *oribi.Store, in io.Reader, o Options) error {
	input := readLines(in)
	defer input.close()
	r := runner{ctx: ctx, store: store, options: o, batch: store.NewBatch(), targets: map[string]*Target{}}
	r.decoder.Tables = r.target
	if o.NoSync {
		r.commit = append(r.commit, oribi.NoSync)
	}
	for number := 1; ; number++ {
		n, err := input.next(ctx)
		switch {
		case err == io.EOF:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &LineError{Name: o.Name, Line: number, Err: err}
		}
		if err := r.line(n); err != nil {
			return err
		}
		input.done(n)
	}
}

type runner struct {
	ctx     context.Context
	store   *oribi.Store
	options Options
	batch   *oribi.Batch
	commit  []oribi.CommitOption
	decoder Decoder
	targets map[string]*Target
	stamp   []byte
	applied int64
}

// target finds a table for the decoder, once per name.
func (r *runner) target(name string) (*Target, error) {
	if t := r.targets[name]; t != nil {
		return t, nil
	}
	table, err := r.store.Table(name)
	if err != nil {
		return nil, err
	}
	t := &Target{Table: table, Schema: table.Schema()}
	r.targets[name] = t
	return t, nil
}

// line applies one line; a blank line does nothing.
func (r *runner) line(n line) error {
	if len(jsonin.Trim(n.text)) == 0 {
		return nil
	}
	r.batch.Reset()
	err := r.decoder.Decode(n.text, func(op *Operation) error {
		op.Add(r.batch)
		return RowCause(r.batch.Err())
	})
	if err != nil {
		return r.failed(n, err)
	}
	ts, err := r.batch.Commit(r.ctx, r.commit...)
	if err != nil {
		if r.ctx.Err() != nil && errors.Is(err, r.ctx.Err()) {
			return err // between two batches: nothing of this one was applied
		}
		if row, ok := errors.AsType[*oribi.RowError](err); ok {
			err = opError(row.Row, RowCause(row))
		}
		return r.failed(n, err)
	}
	r.applied++
	if r.options.Applied != nil {
		r.options.Applied(r.applied)
	}
	if r.options.Timestamps == nil {
		return nil
	}
	r.stamp = append(strconv.AppendUint(r.stamp[:0], uint64(ts), 10), '\n')
	if _, err := r.options.Timestamps.Write(r.stamp); err != nil {
		return fmt.Errorf("timestamps: %w", err)
	}
	return nil
}

func (r *runner) failed(n line, err error) error {
	return &LineError{Name: r.options.Name, Line: n.number, Err: err}
}

// RowCause returns a row error without its position, which the caller adds if there is more than
// one row. It returns other errors unchanged.
func RowCause(err error) error {
	row, ok := errors.AsType[*oribi.RowError](err)
	if !ok {
		return err
	}
	err = row.Cause
	if row.Column != "" {
		err = fmt.Errorf("column %q: %w", row.Column, err)
	}
	if row.Key != "" {
		err = fmt.Errorf("table %q: key %s: %w", row.Table, row.Key, err)
	}
	return err
}
