package exportcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/arrowio"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/internal/newfile"
)

// parquetExportNames are the names of these flags.
var parquetExportNames = []string{"compression"}

func (f *arrowExportFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.compression, "compression", arrowio.Zstd.String(), "zstd, snappy, gzip, or none")
}

// arrowSink writes rows as Parquet or Arrow.
type arrowSink struct {
	*Job
	file        *newfile.File // nil: stdout
	compression arrowio.Compression
}

func openArrow(e *Job) (exportSink, error) {
	s := &arrowSink{Job: e}
	var err error
	if s.compression, err = arrowio.ParseCompression(e.Flags.arrow.compression); err != nil {
		return nil, exit.Usage(fmt.Errorf("--compression: %w", err))
	}
	d, err := arrowio.DefinitionOf(e.table, flags.Names(e.columns)...)
	if err == nil {
		_, err = arrowio.Schema(d) // a type without an equivalent is found before there is a file
	}
	if err != nil {
		return nil, s.refused(err)
	}
	if e.Out != "-" {
		s.file, err = newfile.Create(e.Out)
	}
	return s, err
}

func (s *arrowSink) write(scan *oribi.Scan, progress func(rows int64)) (int64, error) {
	r, err := arrowio.NewReader(scan, arrowio.ReaderOptions{})
	if err != nil {
		return 0, s.refused(err)
	}
	defer r.Release()
	var rows int64
	switch {
	case s.name == "parquet":
		rows, err = arrowio.WriteParquet(s.file, r,
			arrowio.ParquetOptions{Compression: s.compression, Progress: progress})
	case s.file == nil:
		rows, err = arrowio.WriteStream(s.Console.Stdout, r, arrowio.ArrowOptions{Progress: progress})
	default:
		rows, err = arrowio.WriteFile(s.file, r, arrowio.ArrowOptions{Progress: progress})
	}
	return rows, s.refused(err)
}

// refused adds the next step to the error of a column that the format does not have, and returns an
// error of a write without the position in the file.
func (s *arrowSink) refused(err error) error {
	if failed, ok := errors.AsType[*exit.OutputError](err); ok {
		return failed
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Path == s.Out {
		return failed
	}
	bad, ok := errors.AsType[*arrowio.ColumnError](err)
	if !ok {
		return err
	}
	why := strings.TrimSuffix(bad.Error(), ": "+oribi.ErrUnsupported.Error())
	return exit.WithHelp(exit.With(exit.Failed, errors.New(why)), otherColumns)
}

func (s *arrowSink) finish() error {
	if s.file == nil {
		return nil
	}
	return s.file.Commit()
}

func (s *arrowSink) abort() {
	if s.file != nil {
		s.file.Abort() // nothing can be lost
	}
}
