package hfilecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilelines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/hfile"
)

// Names of options.
var (
	Systems   = map[string]hfile.System{"hbase": hfile.HBase, "hudi": hfile.Hudi}
	Codecs    = byName(hfile.None, hfile.GZ, hfile.Snappy, hfile.LZ4, hfile.Zstd)
	Encodings = byName(hfile.EncodingNone, hfile.EncodingPrefix, hfile.EncodingDiff,
		hfile.EncodingFastDiff, hfile.EncodingRowIndexV1)
	Blooms = byName(hfile.BloomNone, hfile.BloomRow, hfile.BloomRowCol)
)

// byName maps the names of values to the values.
func byName[T fmt.Stringer](values ...T) map[string]T {
	m := map[string]T{}
	for _, v := range values {
		m[v.String()] = v
	}
	return m
}

// Sizes are the flags of hfile write that are numbers of bytes, with their minimum.
func Sizes(o *hfile.WriterOptions) []hfileSize {
	const hfileHeader = 33 // of a block: HBase refuses checksums of less
	return []hfileSize{{"block-size", "bytes at which a data block ends", 1, &o.BlockBytes},
		{"bytes-per-checksum", "bytes that one checksum covers", hfileHeader, &o.BytesPerChecksum},
		{"index-block-size", "bytes at which an index block ends", 1, &o.IndexBlockBytes}}
}

type hfileSize struct {
	Flag, about string
	least       int
	value       *int
}

// maxHFileSize bounds the sizes: the largest block that hfile reads by default.
const maxHFileSize = hfile.DefaultMaxBlockBytes

// Write is the verb "oribi hfile write".
func Write(a *console.Console) *cobra.Command {
	var o hfile.WriterOptions
	var like, entries, codec, encoding, bloom string
	c := verb.New(a, "write OUT", "Write an HFile from entries, one per line",
		func(cmd *cobra.Command, args []string) error {
			for _, err := range []error{flags.Choice("like", like, Systems, &o.Like),
				flags.Choice("codec", codec, Codecs, &o.Codec),
				flags.Choice("encoding", encoding, Encodings, &o.Encoding), flags.Choice("bloom",
					bloom, Blooms, &o.Bloom)} {
				if err != nil {
					return err
				}
			}
			for _, s := range Sizes(&o) {
				if n := *s.value; cmd.Flags().Changed(s.Flag) && (n < s.least || n > maxHFileSize) {
					return exit.Usage(fmt.Errorf("--%s: want %d to %d, not %d", s.Flag, s.least, maxHFileSize, n))
				}
			}
			if _, err := hfile.NewWriter(io.Discard, o); err != nil {
				return exit.Usage(err) // options that contradict each other
			}
			w := &hfileWriting{a: a, ctx: cmd.Context(), name: entries, options: o}
			return w.run(args[0])
		})
	c.Long = c.Short + `.

Entries have the form in which hfile dump prints them, cells with --like hbase, keys and values with
--like hudi, and are in order. Tags are stored if an entry has some.`
	c.Flags().StringVar(&like, "like", "", "whose form the file has: hbase or hudi")
	c.Flags().StringVar(&entries, "entries", "",
		"file with the entries, in the form of hfile dump; .gz is unpacked, - is stdin")
	c.Flags().StringVar(&codec, "codec", "NONE", "compression: NONE, GZ, SNAPPY, LZ4, or ZSTD; hudi: NONE or GZ")
	c.Flags().StringVar(&encoding, "encoding", "NONE",
		"form of keys in blocks: NONE, PREFIX, DIFF, FAST_DIFF, or ROW_INDEX_V1; hudi: NONE")
	c.Flags().StringVar(&bloom, "bloom", "NONE", "HBase's Bloom filter: NONE, ROW, or ROWCOL; hudi: NONE")
	for _, s := range Sizes(&o) {
		c.Flags().IntVar(s.value, s.Flag, 0, s.about+" (default: that of the system)")
	}
	verb.Require(c, "like", "entries")
	return c
}

// hfileWriting writes one file.
type hfileWriting struct {
	a       *console.Console
	ctx     context.Context
	name    string // of the entries
	options hfile.WriterOptions

	spool *os.File // a copy of entries that cannot be read twice; nil if they can be
}

// run writes the file. It reads HBase's entries twice: the form of the first cell depends on
// whether any cell has tags.
func (w *hfileWriting) run(out string) error {
	if _, err := os.Lstat(out); err == nil { // found at once, not after the first reading
		return &fs.PathError{Op: "create", Path: out, Err: fs.ErrExist}
	}
	hbase := w.options.Like == hfile.HBase
	if hbase {
		if err := w.copyStream(); err != nil {
			return err
		}
		if w.spool != nil {
			defer os.Remove(w.spool.Name())
			defer w.spool.Close()
		}
		if err := w.each(w.findTags); err != nil {
			return err
		}
	}
	f, err := hfile.Create(out, w.options)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "create", Path: out, Err: p.Err} // not the temporary name
	}
	if err != nil {
		return err
	}
	defer f.Abort() // does nothing after Finish
	err = w.each(func(r *hfilelines.Reader) error {
		if hbase {
			c, err := r.Cell()
			if err != nil {
				return err
			}
			return f.Append(c)
		}
		kv, err := r.KeyValue()
		if err != nil {
			return err
		}
		return f.AppendKeyValue(kv.Key, kv.Value)
	})
	if err != nil {
		return err
	}
	return f.Finish()
}

// findTags sets the option for tags if the next entry has some.
func (w *hfileWriting) findTags(r *hfilelines.Reader) error {
	c, err := r.Cell()
	w.options.Tags = w.options.Tags || len(c.Tags) > 0
	return err
}

// copyStream copies entries that come from stdin or a pipe into a temporary file.
func (w *hfileWriting) copyStream() error {
	if w.name != "-" {
		info, err := os.Stat(w.name)
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() {
			return nil
		}
	}
	in, err := w.a.OpenInput(w.name)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := os.CreateTemp("", "oribi-entries-")
	if err != nil {
		return err
	}
	w.spool = f
	_, err = io.Copy(f, console.Interruptible(w.ctx, in))
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return fmt.Errorf("%s: %w", w.name, err)
	}
	return nil
}

// each calls use until it has read all entries and returns io.EOF. Other errors of use are errors
// of an entry.
func (w *hfileWriting) each(use func(r *hfilelines.Reader) error) error {
	in, err := w.entries()
	if err != nil {
		return err
	}
	defer in.Close()
	r := hfilelines.NewReader(console.Interruptible(w.ctx, in))
	for {
		err := use(r)
		switch {
		case err == nil:
		case err == io.EOF:
			return nil
		case errors.Is(err, context.Canceled):
			return err
		default:
			return exit.With(exit.Failed, fmt.Errorf("%s:%d: %w", w.name, r.Line(), err))
		}
	}
}

// entries opens the entries.
func (w *hfileWriting) entries() (io.ReadCloser, error) {
	if w.spool == nil {
		return w.a.OpenInput(w.name)
	}
	if _, err := w.spool.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.NopCloser(w.spool), nil
}
