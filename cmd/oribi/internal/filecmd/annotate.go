package filecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/block"
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
