package loadcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/arrowio"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// arrowInput is an input in Parquet or Arrow.
type arrowInput struct {
	in   io.Closer
	file *arrowio.File
	rows *arrowio.Rows // nil: reading has not begun
}

func (in *arrowInput) Close() error {
	if in.rows != nil {
		in.rows.Release()
	}
	if in.file != nil {
		in.file.Close() // it was only read: nothing can be lost
	}
	return in.in.Close()
}

// openArrowLoad opens the Parquet or Arrow that is loaded.
func openArrowLoad(ctx context.Context, a *console.Console, f *Flags, o *load.Options) (*Input, error) {
	in, whole, err := openArrow(ctx, a, f.columnar, o.Name)
	if err != nil {
		return nil, arrowError(o.Name, err)
	}
	c, err := in.choose(ctx, a.Stderr, f, o)
	if err != nil {
		in.Close()
		return nil, err
	}
	bar := progress.Options{What: "load"}
	if len(f.where) == 0 {
		bar.Total = max(in.file.Rows(), 0)
	}
	return &Input{console: a, name: o.Name, file: in, Bar: a.Bar(bar), Whole: whole, columnar: c}, nil
}

// openArrow opens a file, or a stream of Arrow; whole reports which.
func openArrow(
	ctx context.Context, a *console.Console, format *columnarFormat, name string,
) (in *arrowInput, whole bool, err error) {
	info, err := os.Stat(name)
	if name == "-" || strings.HasSuffix(name, ".gz") || format.stream && err == nil && !info.Mode().IsRegular() {
		stream, err := a.OpenInput(name)
		if err != nil {
			return nil, false, err
		}
		in := &arrowInput{in: stream}
		if in.file, err = arrowio.OpenStream(console.Interruptible(ctx, stream), arrowio.OpenOptions{}); err != nil {
			in.Close()
			return nil, false, err
		}
		return in, false, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, false, err
	}
	in = &arrowInput{in: file}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	switch {
	case err != nil:
	case format.name == parquetName && !beginsLikeParquet(file):
		err = fmt.Errorf("not a Parquet file: %w", oribi.ErrCorrupt)
	case format.name == parquetName:
		in.file, err = arrowio.OpenParquet(file, info.Size(), arrowio.OpenOptions{})
	default:
		in.file, err = arrowio.OpenArrow(file, info.Size(), arrowio.OpenOptions{})
	}
	if err != nil {
		in.Close()
		return nil, false, err
	}
	return in, true, nil
}

// beginsLikeParquet reports whether a file has the first bytes of a Parquet file, encrypted ones
// included.
func beginsLikeParquet(file io.ReaderAt) bool {
	var head [4]byte
	_, err := file.ReadAt(head[:], 0)
	return err == nil && (string(head[:]) == "PAR1" || string(head[:]) == "PARE")
}

// choose begins to read the columns and rows that the flags name, and sets the options of the load
// that follow from them. It prints a note for each column that is left out, or whose values need an
// explanation, such as a unit.
func (in *arrowInput) choose(ctx context.Context, stderr io.Writer, f *Flags, o *load.Options) (*columnar, error) {
	d := in.file.Definition()
	byName := map[string]schema.Column{}
	for _, c := range d.Columns {
		byName[c.Name] = c
	}
	for _, name := range o.Columns {
		if _, ok := byName[name]; !ok && !slices.ContainsFunc(d.Refused, func(e *arrowio.ColumnError) bool {
			return e.Column == name
		}) {
			return nil,
				exit.Usage(fmt.Errorf("--columns: column %q: no such column in %s%s", name, o.Name,
					nearest.Hint(name, flags.Names(d.Columns))))
		}
	}
	where, err := flags.Predicates(d.Columns, f.where)
	if err != nil {
		return nil, err
	}
	columns := o.Columns
	if f.columnarFlags.skipUnsupported {
		if columns, err = supported(stderr, d, columns); err != nil {
			return nil, arrowError(o.Name, err)
		}
	}
	if in.rows, err = in.file.Read(ctx,
		arrowio.ReadOptions{Columns: columns, Where: where, Round: f.columnarFlags.round}); err != nil {
		return nil, arrowError(o.Name, err)
	}
	for _, n := range in.rows.Definition().Notes {
		fmt.Fprintf(stderr, "note: column %q: %s\n", celltext.Printable(n.Column), n.Text)
	}
	if o.Fields = in.rows.Columns(); len(o.Fields) == 0 {
		return nil, exit.With(exit.Failed, fmt.Errorf("%s: the file has no columns", o.Name))
	}
	o.Batches = func(yield func(*batch.RecordBatch, error) bool) {
		for b, err := range in.rows.Batches() {
			if !yield(b, arrowError(o.Name, err)) {
				return
			}
		}
	}
	c := &columnar{key: d.Key}
	for _, field := range o.Fields {
		c.columns = append(c.columns, byName[field.Name])
	}
	if d.Stored {
		c.table = &schemafile.Table{Comment: d.Comment, History: d.History, RowFile: d.RowFile}
		if slices.Contains(flags.Names(c.columns), d.Expires.Column) {
			c.table.Expires = schemafile.Expires{Column: d.Expires.Column, Age: d.Expires.Age}
		}
		for _, x := range in.rows.Definition().Indexes {
			c.table.Indexes = append(c.table.Indexes, schemafile.Index{Name: x.Name, Columns: x.Columns, Unique: x.Unique})
		}
	}
	return c, nil
}

// supported returns the columns that can be read, and prints a note for each of the others; nil
// means all. Errors: the error of a damaged column; if no column can be read, the error of the last
// one.
func supported(stderr io.Writer, d *arrowio.Definition, columns []string) ([]string, error) {
	left := columns
	if columns == nil {
		left = flags.Names(d.Columns)
	}
	var last error
	for _, bad := range d.Refused {
		if errors.Is(bad, oribi.ErrCorrupt) {
			return nil, bad
		}
		twice := slices.ContainsFunc(d.Columns, func(c schema.Column) bool { return c.Name == bad.Column })
		if columns != nil && (twice || !slices.Contains(columns, bad.Column)) {
			continue
		}
		if !twice {
			left = slices.DeleteFunc(slices.Clone(left), func(name string) bool { return name == bad.Column })
		}
		noteLeftOut(stderr, bad.Column, refusal(bad))
		last = bad
	}
	if len(left) == 0 && last != nil {
		return nil, last
	}
	return left, nil
}

// refusal returns why a column cannot be loaded.
func refusal(bad *arrowio.ColumnError) string {
	text := bad.Err.Error()
	for _, class := range []error{oribi.ErrUnsupported, oribi.ErrSchema} {
		text = strings.TrimSuffix(text, ": "+class.Error())
	}
	return celltext.Printable(text)
}

// roundTimes is the next step if a time has a fraction of a microsecond.
const roundTimes = "to round times in nanoseconds down to microseconds: --round"

// arrowError gives an error about Parquet or Arrow its place and exit code.
func arrowError(name string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ok := errors.AsType[*os.PathError](err); ok {
		return err
	}
	if bad, ok := errors.AsType[*arrowio.ColumnError](err); ok && !errors.Is(err, oribi.ErrCorrupt) {
		if bad.Row >= 0 {
			why := strings.TrimSuffix(bad.Err.Error(), ": "+oribi.ErrRow.Error())
			line := &apply.LineError{Name: name, Line: int(bad.Row) + 1, Row: true,
				Err: fmt.Errorf("column %q: %s", bad.Column, why)}
			if errors.Is(err, arrowio.ErrNanoseconds) {
				return exit.WithHelp(line, roundTimes)
			}
			return line
		}
		return unsupportedColumn(name, bad.Column, refusal(bad))
	}
	err = fmt.Errorf("%s: %w", name, err)
	switch {
	case errors.Is(err, oribi.ErrCorrupt):
		return exit.With(exit.Damage, err)
	case errors.Is(err, oribi.ErrUnsupported):
		return exit.With(exit.Failed, err)
	}
	return err
}
