package filecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loose"
)

func annotateFlag(c *cobra.Command, annotate *bool) {
	c.Flags().BoolVar(annotate, "annotate", false, "print the bytes with their meaning instead; for small files")
}

// maxAnnotated bounds the size of a file whose bytes are printed one by one.
const maxAnnotated = 1 << 20

// printAnnotated prints the bytes of a file with their meaning, as dump writes them, and then
// returns the damage found.
func printAnnotated(
	ctx context.Context, a *console.Console, name string, dump func(w io.Writer, data []byte) error,
) error {
	return loose.With(ctx, a, name, func(src block.Source) error {
		if src.Size() > maxAnnotated {
			return fmt.Errorf("%d bytes are too many to print one by one: at most %d", src.Size(), maxAnnotated)
		}
		data, err := io.ReadAll(io.NewSectionReader(src, 0, src.Size()))
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := dump(&text, data); err != nil {
			return err
		}
		if _, err := a.Stdout.Write(text.Bytes()); err != nil {
			return err
		}
		return verifyCFile(&block.Memory{Bytes: data})
	})
}

// verifyCFile checks a file. A file of raw cblocks can only be a bloom file.
func verifyCFile(src block.Source) error {
	r, err := cfile.Open(src, cfile.ReaderOptions{Arrays: true})
	if err != nil {
		return err
	}
	if err := r.Verify(); err != nil || !isRaw(r) {
		return err
	}
	b, err := bloom.Open(src, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	return b.Verify()
}

// isRaw reports whether a file has cblocks but no rows, as bloom files have.
func isRaw(r *cfile.Reader) bool {
	bs, err := r.BlockPointers()
	return err == nil && r.Rows() == 0 && len(bs) > 0
}
