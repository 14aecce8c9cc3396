package carboncmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
)

// Write is the verb "oribi carbondata write".
func Write(a *console.Console) *cobra.Command {
	var form Form
	var schemaFile, values string
	c := verb.New(a, "write OUT", "Write a folder from rows, one per line", func(cmd *cobra.Command, args []string) error {
		o, err := form.Options()
		if err != nil {
			return err
		}
		if schemaFile == "-" && values == "-" {
			return exit.Usage(errors.New("--schema and --values cannot both be stdin"))
		}
		if args[0] == "-" {
			return exit.Usage(errCarbonStdout)
		}
		if _, err := os.Lstat(args[0]); err == nil { // found at once, not after the rows
			return &fs.PathError{Op: "create", Path: args[0], Err: fs.ErrExist}
		}
		columns, err := carbonColumnsOf(a, schemaFile)
		if err != nil {
			return err
		}
		if err := form.Check(columns, form.sort); err != nil {
			return err
		}
		bar := a.Bar(progress.Options{What: "write", Unit: progress.Bytes})
		defer bar.Stop()
		in, err := a.OpenCounted(values, bar)
		if err != nil {
			return err
		}
		defer in.Close()
		o.Context = cmd.Context()
		w := &carbonWriting{name: values, rows: carbonlines.NewReader(console.Interruptible(cmd.Context(), in), columns)}
		return w.run(cmd.Context(), args[0], columns, o)
	})
	c.Long = c.Short + `.

The schema has the lines that carbondata schema prints; sort is ignored. Rows have the form in which
carbondata dump prints them; a column that a row does not name is null. FLOAT, DOUBLE, DECIMAL, BYTE,
VARCHAR, BINARY, ARRAY, STRUCT, and MAP cannot be sort columns.`
	c.Flags().StringVar(&schemaFile, "schema", "", "file with the columns, in the form of carbondata schema")
	c.Flags().StringVar(&values, "values", "",
		"file with the rows, in the form of carbondata dump; .gz is unpacked, - is stdin")
	form.Add(c)
	verb.Require(c, "schema", "values")
	return c
}

var errCarbonStdout = errors.New("CarbonData is a folder, and cannot be written to stdout")

// carbonColumnsOf reads a schema file.
func carbonColumnsOf(a *console.Console, name string) ([]carbondata.Column, error) {
	text, err := a.ReadInput(name)
	if err != nil {
		return nil, err
	}
	columns, err := carbonlines.ReadColumns(name, bytes.NewReader(text))
	if err != nil {
		return nil, exit.Usage(err)
	}
	return columns, nil
}

// carbonWriting writes one folder.
type carbonWriting struct {
	name string // of the rows
	rows *carbonlines.Reader
}

func (w *carbonWriting) run(
	ctx context.Context, out string, columns []carbondata.Column, o carbondata.WriterOptions,
) error {
	f, err := createCarbon(out, columns, o)
	if err != nil {
		return err
	}
	defer f.Abort() // does nothing after Close
	for {
		row, err := w.rows.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = f.Append(row)
		}
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, context.Canceled) {
			return err
		}
		if err != nil {
			return exit.With(exit.Failed, fmt.Errorf("%s:%d: %s", w.name, w.rows.Line(),
				strings.TrimPrefix(err.Error(), "carbondata: ")))
		}
	}
	if err := f.Close(); errors.Is(err, carbondata.ErrNoRows) {
		return exit.With(exit.Failed, fmt.Errorf("%s: %w", w.name, carbondata.ErrNoRows))
	} else if err != nil {
		return err
	}
	return nil
}

// createCarbon begins a folder. All errors are about the command line or the schema file, except
// errors of the file system.
func createCarbon(out string, columns []carbondata.Column, o carbondata.WriterOptions) (*carbondata.Writer, error) {
	f, err := carbondata.Create(out, columns, o)
	if err == nil {
		return f, nil
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &fs.PathError{Op: "create", Path: out, Err: p.Err} // not the temporary name
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return nil, exit.Usage(errors.New(strings.TrimPrefix(err.Error(), "carbondata: ")))
}
