package console

import (
	"fmt"
	"os"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/schema"
)

// Format returns the form of output: the requested one, else the default for a terminal or a
// program.
func (a *Console) Format(name string) (output.Format, error) {
	if name == "" {
		if IsTerminal(a.File) {
			return output.Table, nil
		}
		return output.JSONL, nil
	}
	f, err := output.ParseFormat(name)
	if err != nil {
		return f, exit.Usage(fmt.Errorf("--format: %w", err))
	}
	return f, nil
}

// Writer returns a writer that prints rows on stdout.
func (a *Console) Writer(form output.Format, columns []schema.Column) *output.Writer {
	w := output.New(a.Stdout, form, columns)
	w.Style(a.Style())
	return w
}

// Style returns the layout of tables on stdout.
func (a *Console) Style() output.Style {
	if !IsTerminal(a.File) {
		return output.Style{}
	}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return output.Style{Width: TerminalWidth(a.File), Color: !plain}
}

// PrintBatch prints the rows of one batch. The table form prints the named columns as sizes with
// units.
func (a *Console) PrintBatch(b *batch.RecordBatch, form output.Format, sizes ...string) error {
	w := output.New(a.Stdout, form, b.Schema)
	style := a.Style()
	style.Sizes = sizes
	w.Style(style)
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}
