package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kvlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/kv"
)

// pairs are the keys and values of an input.
type pairs = iter.Seq2[kv.Pair, error]

func (a *app) kvLoad() *cobra.Command {
	var bucket, format string
	c := a.verb("load DIR FILE", "Load keys and values from JSON, CSV, or an HFile",
		func(cmd *cobra.Command, args []string) error {
			read, err := kvFormat(format, args[1])
			if err != nil {
				return err
			}
			rows, begun := int64(0), false
			err = a.withPairs(cmd.Context(), args[1], read, func(in pairs, whole bool, bar *progress.Bar) error {
				return makingBucket(args[0], bucket, writing(cmd), func(db *kv.DB, b *kv.Bucket) (err error) {
					begun = true
					l := pairLoader{db: db, b: b, count: bar.Count}
					if whole {
						l.limits = usualPairLimits
					}
					rows, err = l.load(cmd.Context(), in)
					return err
				})
			})
			if !begun || rows < 0 {
				return err // there is nothing to report, or the number of rows is not known
			}
			report := fmt.Sprintf("loaded %d rows\n", rows)
			if err != nil {
				return withReport(err, report)
			}
			_, err = io.WriteString(a.stderr, report)
			return err
		})
	c.Long = c.Short + `. The store and the bucket are made if they are missing. A later entry replaces an earlier one with the same key.

JSON has the form that kv scan prints. CSV has a header with the names key and value. Of an HFile of HBase, which must have one column,
the newest live version of each row is loaded.`
	bucketFlag(c, &bucket)
	c.Flags().StringVar(&format, "input-format", "",
		"csv, jsonl, or hfile (default: from the name of the file; without it, csv or jsonl from its first bytes)")
	return c
}

// kvFormats are the formats of "kv load"; those with false are not text.
var kvFormats = map[string]bool{"csv": true, "jsonl": true, "hfile": false}

// kvFormat returns the format that the flag or the file's name determines; empty if they do not.
func kvFormat(flag, file string) (string, error) {
	if flag != "" {
		if _, ok := kvFormats[flag]; !ok {
			return "", usage(fmt.Errorf("--input-format: unknown format %q: want csv, jsonl, or hfile", flag))
		}
		return flag, nil
	}
	name := strings.TrimSuffix(file, ".gz")
	for format := range kvFormats {
		if strings.HasSuffix(name, "."+format) {
			return format, nil
		}
	}
	return "", nil
}

// withPairs opens an input and closes it after use returns. whole reports whether the input is a
// file, which never blocks.
func (a *app) withPairs(
	ctx context.Context, name, format string, use func(in pairs, whole bool, bar *progress.Bar) error,
) error {
	if format == "hfile" {
		bar := a.bar(progress.Options{What: "load", Counted: "rows"})
		defer bar.Stop()
		return pairError(a.withHFile(ctx, name, func(r *hfile.Reader) error {
			return use(kvlines.HFile(r), true, bar)
		}))
	}
	o := load.Options{Name: name}
	if format == "csv" {
		o.Format = load.CSV
	} else if format == "jsonl" {
		o.Format = load.JSONL
	}
	in, err := a.openLoad(ctx, &loadFlags{}, &o)
	if err != nil {
		return err
	}
	defer in.close()
	empty := false
	if o.Format == 0 {
		head, err := in.head()
		if bytes.HasPrefix(head, []byte("DATABLK*")) {
			return fmt.Errorf("%s: this is an HFile: add --input-format hfile", name)
		}
		empty = err == nil && len(trimStart(head)) == 0
	}
	if err := in.sniff(&o); err != nil {
		return err
	}
	if empty {
		o.Format = load.JSONL // which needs no header
	}
	if o.Format == load.JSONL {
		return use(kvlines.JSON(name, in), in.whole, in.bar)
	}
	return use(kvlines.CSV(name, in), in.whole, in.bar)
}

// pairError gives an error about an HFile that is loaded its exit code: unlike in the verbs that
// show HFiles, what is not supported is no damage.
func pairError(err error) error {
	if errors.Is(err, oribi.ErrUnsupported) && !errors.Is(err, oribi.ErrCorrupt) {
		if f, ok := errors.AsType[*failure](err); ok {
			err = f.err
		}
		return withCode(exitFailed, err)
	}
	return err
}

func (a *app) kvExport() *cobra.Command {
	var bucket string
	f := exportFlags{format: "hfile"}
	c := a.verb("export DIR OUT", "Write keys and values to a new HFile, in Hudi's form",
		func(cmd *cobra.Command, args []string) error {
			if args[1] == "-" {
				return usage(errors.New("kv export: OUT is a file: an HFile is not written to standard output"))
			}
			e := &export{app: a, ctx: cmd.Context(), flags: &f, changed: func(flag string) bool {
				return flag == "format"
			}, out: args[1]}
			if err := e.check(args[0]); err != nil {
				return err
			}
			return e.run(func(use func(*oribi.Table) error) error {
				return withBucket(args[0], bucket, reading, func(b *kv.Bucket) error { return use(b.Table()) })
			})
		})
	bucketFlag(c, &bucket)
	asOfFlag(c, &f.asOf)
	return c
}
