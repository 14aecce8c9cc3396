package cli

import (
	"fmt"
	"os"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/schema"
)

// format returns the form of output: the requested one, else the default for a terminal or a
// program.
func (a *app) format(name string) (output.Format, error) {
	if name == "" {
		if isTerminal(a.file) {
			return output.Table, nil
		}
		return output.JSONL, nil
	}
	f, err := output.ParseFormat(name)
	if err != nil {
		return f, usage(fmt.Errorf("--format: %w", err))
	}
	return f, nil
}

// writer returns a writer that prints rows on stdout.
func (a *app) writer(form output.Format, columns []schema.Column) *output.Writer {
	w := output.New(a.stdout, form, columns)
	w.Style(a.style())
	return w
}

// style returns the layout of tables on stdout.
func (a *app) style() output.Style {
	if !isTerminal(a.file) {
		return output.Style{}
	}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return output.Style{Width: terminalWidth(a.file), Color: !plain}
}

// printBatch prints the rows of one batch. The table form prints the named columns as sizes with
// units.
func (a *app) printBatch(b *batch.RecordBatch, form output.Format, sizes ...string) error {
	w := output.New(a.stdout, form, b.Schema)
	style := a.style()
	style.Sizes = sizes
	w.Style(style)
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}
