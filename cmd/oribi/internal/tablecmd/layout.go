package tablecmd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/layoutsvg"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Layout is the verb "oribi table layout".
func Layout(a *console.Console) *cobra.Command {
	var svg string
	var f flags.Policy
	c := verb.Printing(a, "layout DIR NAME", "Print where a table's rowsets are in the key space, one line per rowset",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			if svg == "" && (f.Name != "" || cmd.Flags().Changed("budget")) {
				return exit.Usage(errors.New("--policy and --budget need --svg"))
			}
			if f.Name == "" {
				f.Name = "overlap"
			}
			if err := f.Parse(cmd); err != nil {
				return err
			}
			return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
				if svg == "" {
					return printLayout(a, t.Layout(), t.Schema(), form)
				}
				return drawLayout(t, svg, &f)
			})
		})
	c.Flags().StringVar(&svg, "svg", "", "draw the rowsets to this new file instead")
	c.Flags().StringVar(&f.Name, "policy", "",
		"policy whose next pick --svg marks: none, overlap (the default), budgeted, tiered, or leveled")
	f.AddBudget(c)
	return c
}

// drawLayout writes a picture of the layout to a new file.
func drawLayout(t *oribi.Table, name string, f *flags.Policy) error {
	layout := t.Layout()
	options := layoutsvg.Options{Policy: f.Name, Pick: f.Policy.Pick(layout, f.Budget), Key: celltext.Keys(t.Schema())}
	return console.NewFile(name, func(out io.Writer) error { return layoutsvg.Write(out, layout, options) })
}

// printLayout prints one line per rowset, ordered by first key.
func printLayout(a *console.Console, layout compaction.Layout, s *schema.Schema, form output.Format) error {
	var numbers []schema.Column
	for _, name := range []string{"rows", "live", "bytes", "redo_bytes", "undo_bytes", "height"} {
		numbers = append(numbers, schema.Column{Name: name, Type: schema.Int64})
	}
	keys := s.Columns[:s.Keys]
	r := a.Records(form, []output.Group{
		{Columns: []schema.Column{{Name: "rowset", Type: schema.Int64}}},
		{Name: "from", Columns: keys}, {Name: "to", Columns: keys},
		{Columns: []schema.Column{{Name: "width", Type: schema.String}}, Raw: true},
		{Columns: numbers},
	}, "bytes", "redo_bytes", "undo_bytes")
	integer := func(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
	encoder := keyenc.NewEncoder(s)
	spans, heights := compaction.Spans(layout), compaction.Heights(layout)
	for i := range layout.RowSets {
		set := &layout.RowSets[i]
		from, err := encoder.Decode(set.MinKey)
		if err != nil {
			return r.End(i > 0, fmt.Errorf("rowset %d: first key: %w", set.ID, err))
		}
		to, err := encoder.Decode(set.MaxKey)
		if err != nil {
			return r.End(i > 0, fmt.Errorf("rowset %d: last key: %w", set.ID, err))
		}
		r.Add([][]byte{integer(int64(set.ID))}, 1)
		r.Add(from, len(keys))
		r.Add(to, len(keys))
		r.Add([][]byte{strconv.AppendFloat(nil, console.Rounded(spans[i].Width(), 6), 'f', -1, 64),
			integer(set.Rows), integer(set.LiveRows),
			integer(set.Bytes), integer(set.RedoBytes), integer(set.UndoBytes), integer(int64(heights[i]))}, 7)
		if err := r.Write(); err != nil {
			return r.End(true, err)
		}
	}
	return r.End(true, nil)
}
