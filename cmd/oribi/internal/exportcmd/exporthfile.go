package exportcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kvlines"
	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/kv"
)

// hfileSink writes the keys and values of a bucket to an HFile, in Hudi's form.
type hfileSink struct{ f *hfile.FileWriter }

func openHFile(e *Job) (exportSink, error) {
	pair := kv.Columns().Columns[:2]
	if e.Changed("columns") && (len(e.columns) != len(pair) || !slices.Contains(flags.Names(e.columns), pair[0].Name) ||
		!slices.Contains(flags.Names(e.columns), pair[1].Name)) {
		return nil, exit.Usage(errors.New("--columns: an HFile has the columns key and value"))
	}
	e.columns, e.scanned = pair, pair
	f, err := hfile.Create(e.Out, hfile.WriterOptions{Like: hfile.Hudi})
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	return &hfileSink{f}, nil
}

func (s *hfileSink) write(scan *oribi.Scan, progress func(rows int64)) (int64, error) {
	return eachBatch(scan, progress, s.append)
}

func (s *hfileSink) append(b *batch.RecordBatch) error {
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		key := b.Columns[0].Cell(i)
		if err := s.f.AppendKeyValue(key, b.Columns[1].Cell(i)); err != nil {
			return fmt.Errorf("key %s: %w", kvlines.KeyText(key), err)
		}
	}
	return nil
}

func (s *hfileSink) finish() error { return s.f.Finish() }
func (s *hfileSink) abort()        { s.f.Abort() } // nothing can be lost
