package exportcmd

import (
	"io"
	"runtime"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/newfile"
)

// textSink writes rows as CSV or JSON Lines.
type textSink struct {
	rows *output.Writer
	pack *console.Packer // nil: the text is not compressed
	file *newfile.File   // nil: stdout
}

func openText(e *Job) (exportSink, error) {
	form := output.JSONL
	if e.name == "csv" {
		form = output.CSV
	}
	if e.Out == "-" {
		return &textSink{rows: output.New(e.Console.Stdout, form, e.columns)}, nil
	}
	file, err := newfile.Create(e.Out)
	if err != nil {
		return nil, err
	}
	s := &textSink{file: file}
	var to io.Writer = file
	if strings.HasSuffix(e.Out, ".gz") {
		s.pack = console.NewPacker(file)
		to = s.pack
	}
	s.rows = output.New(to, form, e.columns)
	return s, nil
}

func (s *textSink) write(scan *oribi.Scan, progress func(rows int64)) (int64, error) {
	return s.rows.WriteAll(scan.OwnedBatches(), runtime.GOMAXPROCS(0), progress)
}

func (s *textSink) finish() error {
	err := s.rows.Close()
	if err == nil && s.pack != nil {
		err = s.pack.Close()
	}
	if err == nil && s.file != nil {
		err = s.file.Commit()
	}
	return err // abort removes the file
}

func (s *textSink) abort() {
	if s.pack != nil {
		s.pack.Close()
	}
	if s.file != nil {
		s.file.Abort() // nothing can be lost
	}
}
