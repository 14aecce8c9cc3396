package filecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/filespec"
	"github.com/oribi-db/oribi/cmd/oribi/internal/lines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/keyenc"
)

// CFileWrite is the verb "oribi cfile write".
func CFileWrite(a *console.Console) *cobra.Command {
	var specFile, values string
	var zoneMap bool
	c := verb.New(a, "write OUT", "Write a column file from values, one JSON value per line",
		func(cmd *cobra.Command, args []string) error {
			if specFile == "-" && values == "-" {
				return exit.Usage(errors.New("--spec and --values cannot both be stdin"))
			}
			text, err := a.ReadInput(specFile)
			if err != nil {
				return err
			}
			spec, err := filespec.Read(text)
			if err == nil && zoneMap {
				err = withZoneMap(&spec.Options)
			}
			if err != nil {
				return exit.Usage(fmt.Errorf("%s: %w", specFile, err))
			}
			in, err := a.OpenInput(values)
			if err != nil {
				return err
			}
			defer in.Close()
			w := columnWriting{spec: spec, name: values, in: console.Interruptible(cmd.Context(), in)}
			return console.NewFile(args[0], func(out io.Writer) error { return w.run(cmd.Context(), out) })
		})
	c.Flags().StringVar(&specFile, "spec", "",
		"JSON file with the properties of the column file: type, encoding, compression and others, named as in "+
			"cfile info")
	c.Flags().StringVar(&values, "values", "",
		"file with the cells, in the form of cfile dump; .gz is decompressed, - is stdin")
	c.Flags().BoolVar(&zoneMap, "zone-map", false,
		"add a zone map, as the engine does; otherwise the bytes equal those of Kudu's writer")
	verb.Require(c, "spec", "values")
	return c
}

// withZoneMap returns the options with which the engine writes its own files.
func withZoneMap(o *cfile.WriterOptions) error {
	if o.NoChecksums {
		return errors.New("a zone map needs checksums")
	}
	if o.Array {
		return errors.New("columns of arrays have no zone map")
	}
	o.Exact = false
	return nil
}

// maxBatchBytes bounds the cells that are passed to a writer at once, which are all in memory.
const maxBatchBytes = access.MemoryLimit

// columnWriting writes one file.
type columnWriting struct {
	spec *filespec.Spec
	name string // of the values
	in   io.Reader

	writer    *cfile.Writer
	key, last []byte // memory of sorted
	some      bool
}

func (w *columnWriting) run(ctx context.Context, out io.Writer) (err error) {
	o := w.spec.Options
	if w.writer, err = cfile.NewWriter(block.NewSink(out), o); err != nil {
		return exit.Usage(err) // options that contradict each other
	}
	batchCells := w.spec.BatchCells
	if batchCells == 0 && !o.Exact {
		batchCells = batch.WindowRows // cblock boundaries need not match Kudu's: smaller batches suffice
	}
	r := lines.NewReader(w.in, o.Type, o.Array, o.Nullable)
	v := &batch.Vector{Type: o.Type}
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.Reset(v)
		if more, err = w.gather(r, v, batchCells); err != nil {
			return err
		}
		if err := w.writer.Append(v); err != nil {
			return exit.With(exit.Failed, fmt.Errorf("%s: up to line %d: %w", w.name, r.Line, err))
		}
	}
	for _, p := range w.spec.Footer {
		w.writer.AddMetadata(p.Key, p.Value)
	}
	return w.writer.Finish()
}

// gather reads cells into v, all of them if cells is 0. more is false at the end.
func (w *columnWriting) gather(r *lines.Reader, v *batch.Vector, cells int) (more bool, err error) {
	for v.Len < cells || cells == 0 {
		if r.Bytes > maxBatchBytes {
			return false, fmt.Errorf("%s:%d: append_batch has more than %d bytes of cells",
				w.name, r.Line, maxBatchBytes)
		}
		err := r.Next(v)
		if err == io.EOF {
			return false, nil
		}
		if err == nil {
			err = w.sorted(v)
		}
		if errors.Is(err, context.Canceled) {
			return false, err
		}
		if err != nil {
			return false, exit.With(exit.Failed, fmt.Errorf("%s:%d: %w", w.name, max(r.Line, 1), err))
		}
	}
	return true, nil
}

// sorted returns an error if the last cell of v is below the one before; without a value index, the
// order does not matter.
func (w *columnWriting) sorted(v *batch.Vector) error {
	if !w.spec.Options.ValueIndex {
		return nil
	}
	w.key = keyenc.AppendKeyCell(w.key[:0], w.spec.Options.Type, v.Cell(v.Len-1), true)
	if w.some && bytes.Compare(w.key, w.last) < 0 {
		return errors.New("the value is less than the previous one: a value index requires sorted values")
	}
	w.key, w.last, w.some = w.last, w.key, true
	return nil
}
