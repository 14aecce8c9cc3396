package cli

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

func (a *app) tableCount() *cobra.Command {
	var at, by, format string
	var expressions []string
	c := a.verb("count DIR NAME", "Print the number of rows", func(cmd *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		state, err := asOf(cmd.Context(), at)
		if err != nil {
			return err
		}
		return withTable(args[0], args[1], reading, func(t *oribi.Table) error {
			where, err := whereOption(t.Schema(), expressions)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("by") {
				column, err := chosen(t.Schema(), "by", []string{by}, true)
				if err != nil {
					return err
				}
				values, err := countValues(cmd.Context(), t, &column[0], state, where)
				if err != nil {
					return err
				}
				return a.printBatch(values, form)
			}
			n, err := t.Count(cmd.Context(), state, where, oribi.Workers(0))
			if err != nil {
				return err
			}
			return a.printf("%d\n", n)
		})
	})
	asOfFlag(c, &at)
	whereFlag(c, &expressions)
	c.Flags().StringVar(&by, "by", "", "count the rows of each value of this `column`, most frequent first")
	formatFlag(c, &format)
	return c
}

// maxCountedBytes bounds the memory for the distinct values of a count.
const maxCountedBytes = 128 << 20

// valueOverhead is the approximate memory of a distinct value in addition to its bytes.
const valueOverhead = 64

// valueCount is a value, nil for NULL, and the number of rows that have it.
type valueCount struct {
	cell []byte
	rows int64
}

// countValues counts the rows of each value of a column. It prints one row per value, most frequent
// first, then by value.
func countValues(ctx context.Context, t *oribi.Table, c *schema.Column, options ...oribi.ScanOption) (*batch.RecordBatch, error) {
	index := map[string]int{}
	var counts []valueCount
	null, size := -1, 0
	options = append(options, oribi.Columns(c.Name), oribi.AnyOrder())
	for b, err := range t.Scan(ctx, options...).Batches() {
		if err != nil {
			return nil, err
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			cell := b.Columns[0].Cell(i)
			k, known := null, null >= 0
			if cell != nil {
				k, known = index[string(cell)]
			}
			if known {
				counts[k].rows++
				continue
			}
			if size += len(cell) + valueOverhead; size > maxCountedBytes {
				return nil, fmt.Errorf("column %q has more distinct values than fit the memory of a count (%d MiB)", c.Name, maxCountedBytes>>20)
			}
			k = len(counts)
			counts = append(counts, valueCount{slices.Clone(cell), 1})
			if cell == nil {
				null = k
			} else {
				counts[k].cell = append([]byte{}, cell...)
				index[string(cell)] = k
			}
		}
	}
	slices.SortFunc(counts, func(x, y valueCount) int {
		switch {
		case x.rows != y.rows:
			return cmp.Compare(y.rows, x.rows)
		case x.cell == nil || y.cell == nil:
			return cmp.Compare(boolInt(x.cell == nil), boolInt(y.cell == nil)) // NULL last
		}
		return batch.Compare(c.Type, x.cell, y.cell)
	})
	value := *c
	value.Name, value.Nullable = "value", true
	out := batch.New([]schema.Column{value, {Name: "count", Type: schema.Int64}}, len(counts))
	for i, n := range counts {
		out.Columns[0].SetCell(i, n.cell)
		out.Columns[1].SetCell(i, binary.LittleEndian.AppendUint64(nil, uint64(n.rows)))
	}
	return out, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
