// Package filecmd has the verbs of "oribi cfile", "oribi bloom", and "oribi delta".
package filecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/advise"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/lines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loose"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// withCFile opens a column file and closes it after use returns.
func withCFile(ctx context.Context, a *console.Console, name string, use func(r *cfile.Reader) error) error {
	return loose.With(ctx, a, name, func(src block.Source) error {
		r, err := cfile.Open(src, cfile.ReaderOptions{Arrays: true})
		if err != nil {
			return err
		}
		return use(r)
	})
}

// checked returns err or, if it is nil, the error of a check of the rest of the file: each verb
// reports damage anywhere in its file.
func checked(err error, r *cfile.Reader) error {
	if err != nil {
		return err
	}
	return r.Verify()
}

// CFileInfo is the verb "oribi cfile info".
func CFileInfo(a *console.Console) *cobra.Command {
	return verb.Printing(a, "info FILE", "Describe a column file",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return withCFile(cmd.Context(), a, args[0], func(r *cfile.Reader) error {
				f, err := cfileFields(r, form)
				if err := checked(err, r); err != nil {
					return err
				}
				return a.PrintFields(f, form)
			})
		})
}

// CFileDump is the verb "oribi cfile dump".
func CFileDump(a *console.Console) *cobra.Command {
	return verb.Printing(a, "dump FILE", "Print the cells, one JSON value per line",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return withCFile(cmd.Context(), a, args[0], func(r *cfile.Reader) error {
				if form == output.CSV || form == output.Table {
					return dumpRows(cmd.Context(), a, r, form)
				}
				p := lines.NewPrinter(a.Stdout, r.Info().Type, form == output.JSON)
				return console.Ended(checked(eachWindow(cmd.Context(), r, p.Vector), r), p)
			})
		})
}

// eachWindow reads a whole file, window by window. The vector is valid during the call.
func eachWindow(ctx context.Context, r *cfile.Reader, use func(v *batch.Vector) error) error {
	c, v := r.NewColumnReader(), &batch.Vector{Type: r.Info().Type}
	for row := int64(0); row < r.Rows(); row += int64(v.Len) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := c.ReadVector(batch.Ordinal(row), batch.WindowRows, v); err != nil {
			return err
		}
		if err := use(v); err != nil {
			return err
		}
	}
	return nil
}

// dumpRows prints the cells of one column as a table or as CSV, arrays as JSON.
func dumpRows(ctx context.Context, a *console.Console, r *cfile.Reader, form output.Format) error {
	column := lines.Column(r.Info().Type)
	shown := column
	if r.Info().Array {
		shown.Type = schema.String
	}
	w := a.Writer(form, []schema.Column{shown})
	b := batch.New([]schema.Column{shown}, 0)
	err := eachWindow(ctx, r, func(v *batch.Vector) error {
		b.Reset(v.Len)
		if v.Elements == nil {
			for i := range v.Len {
				b.Columns[0].SetCell(i, v.Cell(i))
			}
			return w.Write(b)
		}
		for i := range v.Len {
			var text []byte
			if !v.IsNull(i) {
				text = lines.AppendCell(nil, &column, v, i)
			}
			b.Columns[0].SetCell(i, text)
		}
		return w.Write(b)
	})
	return console.Ended(checked(err, r), w)
}

// CFileSeek is the verb "oribi cfile seek".
func CFileSeek(a *console.Console) *cobra.Command {
	return verb.New(a, "seek FILE VALUE", "Find the first cell at or after a value",
		func(cmd *cobra.Command, args []string) error {
			return withCFile(cmd.Context(), a, args[0], func(r *cfile.Reader) error {
				if err := r.Verify(); err != nil {
					return err
				}
				if !r.Info().ValueIndex || isRaw(r) {
					return exit.With(exit.Failed, fmt.Errorf("%s: the file has no value index", args[0]))
				}
				target, err := target(r.Info().Type, args[1])
				if err != nil {
					return exit.Usage(fmt.Errorf("VALUE: %w", err))
				}
				ord, exact, err := r.Seek(target)
				if err != nil {
					return err
				}
				at := int64(ord)
				if at >= r.Rows() {
					at = -1
				}
				return a.Printf(`{"ordinal":%d,"exact":%t}`+"\n", at, exact)
			})
		})
}

// target parses the value to seek: text as it is, binary as 0x…, everything else as a number.
func target(t schema.Type, text string) ([]byte, error) {
	column := lines.Column(t)
	switch column.Type {
	case schema.String:
		return append([]byte{}, text...), nil
	case schema.Binary:
		return celltext.FromHex([]byte{}, text)
	}
	return celltext.FromNumber([]byte{}, &column, text)
}

// cblockColumns are the columns of the output of "cfile blocks".
var cblockColumns = []schema.Column{
	{Name: "kind", Type: schema.String}, {Name: "offset", Type: schema.Int64}, {Name: "size", Type: schema.Int64},
	{Name: "raw_size", Type: schema.Int64}, {Name: "rows", Type: schema.Int64},
	{Name: "first_ordinal", Type: schema.Int64},
	{Name: "encoding", Type: schema.String}, {Name: "ratio", Type: schema.Double},
}

// CFileBlocks is the verb "oribi cfile blocks".
func CFileBlocks(a *console.Console) *cobra.Command {
	var annotate bool
	c := verb.Printing(a, "blocks FILE", "List the cblocks of a file, or print its bytes with their meaning",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			if annotate {
				return printAnnotated(cmd.Context(), a, args[0], cfile.DumpWhole)
			}
			return withCFile(cmd.Context(), a, args[0], func(r *cfile.Reader) error {
				if err := r.Verify(); err != nil {
					return err
				}
				w := a.Writer(form, cblockColumns)
				b := batch.New(cblockColumns, 1)
				if err := r.Cblocks(func(c cfile.Cblock) error {
					setCblock(b, &c)
					return w.Write(b)
				}); err != nil {
					return err
				}
				return w.Close()
			})
		})
	annotateFlag(c, &annotate)
	return c
}

// setCblock fills b with one row that describes a cblock.
func setCblock(b *batch.RecordBatch, c *cfile.Cblock) {
	b.Reset(1)
	numbers := func(column int, n int64) { batch.Values[int64](b.Columns[column])[0] = n }
	b.Columns[0].SetCell(0, []byte(c.Kind.String()))
	numbers(1, c.Pointer.Offset)
	numbers(2, int64(c.Pointer.Size))
	numbers(3, int64(c.Payload))
	if c.Rows > 0 {
		numbers(4, int64(c.Rows))
		numbers(5, c.First)
	} else {
		b.Columns[4].SetCell(0, nil)
		b.Columns[5].SetCell(0, nil)
	}
	var encoding []byte
	if c.Encoding != schema.Auto {
		encoding = []byte(c.Encoding.String())
	}
	b.Columns[6].SetCell(0, encoding)
	batch.Values[float64](b.Columns[7])[0] = console.Rounded(float64(c.Payload)/float64(c.Pointer.Size), 3)
}

// CFileVerify is the verb "oribi cfile verify".
func CFileVerify(a *console.Console) *cobra.Command {
	return verb.New(a, "verify FILE", "Check every checksum and count of a file",
		func(cmd *cobra.Command, args []string) error {
			err := loose.With(cmd.Context(), a, args[0], verifyCFile)
			if err != nil {
				return err
			}
			return a.Printf("ok\n")
		})
}

// adviceColumns are the columns of the output of "cfile advise".
var adviceColumns = []schema.Column{
	{Name: "encoding", Type: schema.String}, {Name: "compression", Type: schema.String},
	{Name: "current", Type: schema.Bool},
	{Name: "rows", Type: schema.Int64}, {Name: "size", Type: schema.Int64}, {Name: "ratio", Type: schema.Double},
	{Name: "encode_mb_s", Type: schema.Double}, {Name: "decode_mb_s", Type: schema.Double},
	{Name: "advice", Type: schema.String, Nullable: true},
}

// CFileAdvise is the verb "oribi cfile advise".
func CFileAdvise(a *console.Console) *cobra.Command {
	c := verb.Printing(a, "advise FILE", "Compare all encodings and compressions of a column",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return withCFile(cmd.Context(), a, args[0], func(r *cfile.Reader) error {
				if err := r.Verify(); err != nil {
					return err
				}
				if isRaw(r) {
					return errors.New("the file has no cells")
				}
				sample, err := advise.Take(cmd.Context(), r)
				if err != nil {
					return err
				}
				trials, err := sample.Trials(cmd.Context(), r.Info())
				if err != nil {
					return err
				}
				return a.PrintBatch(advice(sample, trials), form)
			})
		})
	c.Long = c.Short + `.

Sizes are those of files with the cells of this one or, if it is large, with a sample of 16 MiB of
its cells ("rows" is their number); cblocks have the default size. "ratio" is bytes of cells
divided by bytes of file; the rates count bytes of cells, in memory. Dictionaries are read as codes.
"advice" is the compression of a schema file that stores the column in this form at rest, if that
takes at least 3 % less space than now.`
	return c
}

func advice(s *advise.Sample, trials []advise.Trial) *batch.RecordBatch {
	b := batch.New(adviceColumns, len(trials))
	float := func(column, row int, x float64, decimals int) {
		batch.Values[float64](b.Columns[column])[row] = console.Rounded(x, decimals)
	}
	for i, t := range trials {
		b.Columns[0].SetCell(i, []byte(t.Encoding.String()))
		b.Columns[1].SetCell(i, []byte(t.Compression.String()))
		b.Columns[2].SetCell(i, celltext.FromBool(nil, t.Current))
		batch.Values[int64](b.Columns[3])[i] = s.Rows
		batch.Values[int64](b.Columns[4])[i] = t.Bytes
		float(5, i, float64(s.Bytes)/float64(t.Bytes), 3)
		float(6, i, t.EncodeRate/1e6, 1)
		float(7, i, t.DecodeRate/1e6, 1)
		var text []byte
		if t.Advice != schema.DefaultCompression {
			text = fmt.Appendf(nil, "%s saves %.0f %%", t.Advice.FileName(), 100*t.Saves)
		}
		b.Columns[8].SetCell(i, text)
	}
	return b
}
