// Package hfilecmd has the verbs of "oribi hfile".
package hfilecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilelines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loose"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/hfile"
)

// Bounds of the blocks that are kept for the next key of seek and probe: bytes, and a multiple of
// the file's size, since the blocks of a damaged file may unpack to a thousand times their size.
const (
	hfileCacheBytes  = 64 << 20
	hfileCacheFactor = 8
)

// With opens an HFile and closes it after use returns.
func With(ctx context.Context, a *console.Console, name string, use func(r *hfile.Reader) error) error {
	return loose.With(ctx, a, name, func(src block.Source) error {
		r, err := hfile.Open(src,
			hfile.ReaderOptions{Cache: cache.New(min(hfileCacheBytes, hfileCacheFactor*src.Size()))})
		if err != nil {
			return err
		}
		return use(r)
	})
}

// hfileFlags are the flags of the verbs that print what is in an HFile.
type hfileFlags struct{ view, format string }

func (f *hfileFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.view, "view", "",
		"hbase (cells) or hudi (keys and values) (default: hudi if the file names Hudi's comparator)")
	verb.FormatFlag(c, &f.format)
}

// check returns the form of output, and refuses unknown views.
func (f *hfileFlags) check(a *console.Console) (output.Format, error) {
	if f.view != "" && f.view != "hbase" && f.view != "hudi" {
		return 0, exit.Usage(fmt.Errorf("--view: want hbase or hudi, not %q", f.view))
	}
	return a.Format(f.format)
}

// hudi reports whether a file is shown in Hudi's view.
func (f *hfileFlags) hudi(r *hfile.Reader) bool {
	if f.view == "" {
		return r.Hudi()
	}
	return f.view == "hudi"
}

// Columns of entries in tables and in CSV. Tags are JSON.
var (
	cellColumns = console.TextColumns([]string{"ts", "mvcc"}, "row", "family", "qualifier", "ts",
		"type", "mvcc", "tags", "value")
	KeyValueColumns = console.TextColumns(nil, "key", "value")
)

// Dump is the verb "oribi hfile dump".
func Dump(a *console.Console) *cobra.Command {
	var flags hfileFlags
	var from, to string
	var limit int64
	c := verb.New(a, "dump FILE", "Print the entries, one per line", func(cmd *cobra.Command, args []string) error {
		form, err := flags.check(a)
		if err != nil {
			return err
		}
		var lower, upper []byte // inclusive, exclusive; nil without a bound
		if cmd.Flags().Changed("limit") && limit < 1 {
			return exit.Usage(fmt.Errorf("--limit: want at least 1, not %d", limit))
		}
		for _, bound := range []struct {
			flag, text string
			key        *[]byte
		}{{"from", from, &lower}, {"to", to, &upper}} {
			if !cmd.Flags().Changed(bound.flag) {
				continue
			}
			if *bound.key, err = hfilelines.ParseBytes(bound.text); err != nil {
				return exit.Usage(fmt.Errorf("--%s: %w", bound.flag, err))
			}
		}
		return With(cmd.Context(), a, args[0], func(r *hfile.Reader) error {
			if flags.hudi(r) {
				p := a.Objects(form, KeyValueColumns)
				return console.Ended(console.PrintEntries(cmd.Context(), p, r.KeyValuesBetween(lower, upper), limit,
					func(line []byte, kv *hfile.KeyValue) ([]byte, error) {
						return hfilelines.AppendKeyValue(line, kv), nil
					}), p)
			}
			p := a.Objects(form, cellColumns)
			return console.Ended(console.PrintEntries(cmd.Context(), p, r.CellsBetween(lower, upper), limit,
				hfilelines.AppendCell), p)
		})
	})
	flags.add(c)
	c.Flags().StringVar(&from, "from", "", "first row or key, 0x… for bytes")
	c.Flags().StringVar(&to, "to", "", "row or key after the last one, 0x… for bytes")
	c.Flags().Int64Var(&limit, "limit", 0, "print at most this many entries")
	return c
}

// Verify is the verb "oribi hfile verify".
func Verify(a *console.Console) *cobra.Command {
	return verb.New(a, "verify FILE", "Check everything: blocks, index, order, counts, Bloom filters",
		func(cmd *cobra.Command, args []string) error {
			err := With(cmd.Context(), a, args[0], func(r *hfile.Reader) error { return r.Verify(cmd.Context()) })
			if err != nil {
				return err
			}
			return a.Printf("ok\n")
		})
}
