package filecmd

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loose"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
)

// withBloom opens a bloom file, checks all of it, and closes it after use returns.
func withBloom(ctx context.Context, a *console.Console, name string, use func(r *bloom.Reader) error) error {
	return loose.With(ctx, a, name, func(src block.Source) error {
		r, err := bloom.Open(src, cfile.ReaderOptions{})
		if err != nil {
			return err
		}
		// Fields of the file first, then of the filters.
		if err := verifyCFile(src); err != nil {
			return err
		}
		return use(r)
	})
}

// BloomInfo is the verb "oribi bloom info".
func BloomInfo(a *console.Console) *cobra.Command {
	var annotate bool
	c := verb.Printing(a, "info FILE", "Describe a bloom file",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			if annotate {
				return printAnnotated(cmd.Context(), a, args[0], bloom.Dump)
			}
			return withBloom(cmd.Context(), a, args[0], func(r *bloom.Reader) error {
				i, err := r.Info()
				if err != nil {
					return err
				}
				f := new(console.Fields)
				f.Add("size", i.File.Bytes, "version", i.File.Version, "checksums", i.File.Checksums,
					"bloom_blocks", i.Filters, "bytes", i.Bitmap, "num_hashes", i.Hashes, "bits", i.Bits,
					"bits_set", i.Set)
				f.JSON("fp_rate", strconv.AppendFloat(nil, i.Wrong, 'g', 3, 64))
				return a.PrintFields(f, form)
			})
		})
	annotateFlag(c, &annotate)
	return c
}

// BloomProbe is the verb "oribi bloom probe".
func BloomProbe(a *console.Console) *cobra.Command {
	const form = "probe FILE HEX"
	c := verb.New(a, form, "Test whether keys may be in the file", func(cmd *cobra.Command, args []string) error {
		keys, err := keysOf(args)
		if err != nil {
			return exit.Usage(err)
		}
		return withBloom(cmd.Context(), a, args[0], func(r *bloom.Reader) error {
			if keys == nil {
				return probeLines(cmd.Context(), a, r)
			}
			for _, key := range keys {
				if err := probe(a, r, key, a.Stdout); err != nil {
					return err
				}
			}
			return nil
		})
	})
	c.Use = form + "…"
	c.Long = c.Short + `.

Keys are encoded keys in hex; - reads them from stdin, one per line; an empty line is the empty key.
Each key is answered with a line: false is certain, true may be wrong.`
	one := c.Args
	c.Args = func(cmd *cobra.Command, args []string) error { return one(cmd, args[:min(len(args), 2)]) }
	return c
}

// keysOf reads the keys on the command line; nil means that they come from stdin.
func keysOf(args []string) ([][]byte, error) {
	if args[1] == "-" && len(args) == 2 {
		if args[0] == "-" {
			return nil, errors.New("FILE and keys cannot both be stdin")
		}
		return nil, nil
	}
	var keys [][]byte
	for _, text := range args[1:] {
		key, err := hexKey(text)
		if err != nil {
			return nil, fmt.Errorf("HEX: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// hexKey reads a key in hex, with or without 0x.
func hexKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil {
		return nil, fmt.Errorf("%.60q is not hex with two digits per byte", text)
	}
	return key, nil
}

func probe(a *console.Console, r *bloom.Reader, key []byte, out io.Writer) error {
	maybe, err := r.MayContain(bloom.MakeProbe(key))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, maybe)
	return err
}

// probeLines answers keys from stdin one by one, as they arrive.
func probeLines(ctx context.Context, a *console.Console, r *bloom.Reader) error {
	in := bufio.NewReaderSize(console.Interruptible(ctx, a.Stdin), 64<<10)
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	for number := 1; ; number++ {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			return out.Flush()
		}
		if err != nil && err != io.EOF {
			out.Flush() // report the input's error
			return err
		}
		key, err := hexKey(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if err != nil {
			out.Flush() // likewise
			return exit.With(exit.Failed, fmt.Errorf("-:%d: %w", number, err))
		}
		if err := probe(a, r, key, out); err != nil {
			return err
		}
		if in.Buffered() == 0 { // the next read may block: print the answers first
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}
