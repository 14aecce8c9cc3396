package loadcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// Flags are the flags of "table load".
type Flags struct {
	format, delimiter, mode, skipBad string
	noHeader, create, dryRun, exact  bool
	columns, header, key, types      []string
	where                            []string
	batch, cellLimit                 int

	columnar      *columnarFormat // of the input; nil if it is text
	columnarFlags columnarFlags
}

// columnarFlags are the flags of "table load" that are for formats with types.
type columnarFlags struct{ round, skipUnsupported bool }

// columnarFormat is a format of input that has types and comes in record batches.
type columnarFormat struct {
	name     string
	suffixes []string // of files
	stream   bool     // stdin and .gz files are read, too
	open     func(ctx context.Context, a *console.Console, f *Flags, o *load.Options) (*Input, error)
}

// columnar describes the columns of a columnar input.
type columnar struct {
	columns []schema.Column // that are loaded
	key     []string        // the key columns that the input names, if it does
	// the definition of the table that was exported; nil if the input has only rows
	table *schemafile.Table
}

// Input is a file that is loaded. It shows how much of it has been read.
type Input struct {
	io.Reader
	console *console.Console
	name    string
	file    io.Closer
	Bar     *progress.Bar

	Whole bool // a file, not a stream
	empty bool // it has no rows; set by inferText

	columnar *columnar // instead of Reader; nil if the input is text
}

// parquetName is the name of Parquet among the columnar formats.
const parquetName = "Parquet"

// noteLeftOut prints the note about a column that is not loaded.
func noteLeftOut(stderr io.Writer, column, why string) {
	fmt.Fprintf(stderr, "note: column %q is left out: %s\n", celltext.Printable(column), why)
}

// unsupportedColumn is the error of a column that a table cannot have.
func unsupportedColumn(name, column, why string) error {
	return exit.WithHelp(exit.With(exit.Failed, fmt.Errorf("%s: column %q: %s", name, column, why)),
		"to load the other columns: --skip-unsupported, or --columns with their names")
}
