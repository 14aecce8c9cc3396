package kvcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exportcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kvlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/loadcmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/hfile"
	"github.com/oribi-db/oribi/kv"
)

// Load is the verb "oribi kv load".
func Load(a *console.Console) *cobra.Command {
	var bucket, format string
	c := verb.New(a, "load DIR FILE", "Load keys and values from JSON, CSV, or an HFile",
		func(cmd *cobra.Command, args []string) error {
			read, err := kvFormat(format, args[1])
			if err != nil {
				return err
			}
			rows, begun := int64(0), false
			err = withPairs(cmd.Context(), a, args[1], read, func(in pairs, whole bool, bar *progress.Bar) error {
				return makingBucket(args[0], bucket, access.Writing(cmd), func(db *kv.DB, b *kv.Bucket) (err error) {
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
				return exit.WithReport(err, report)
			}
			_, err = io.WriteString(a.Stderr, report)
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

// Formats are the formats of "kv load"; those with false are not text.
var Formats = map[string]bool{"csv": true, "jsonl": true, "hfile": false}

// kvFormat returns the format that the flag or the file's name determines; empty if they do not.
func kvFormat(flag, file string) (string, error) {
	if flag != "" {
		if _, ok := Formats[flag]; !ok {
			return "", exit.Usage(fmt.Errorf("--input-format: unknown format %q: want csv, jsonl, or hfile", flag))
		}
		return flag, nil
	}
	name := strings.TrimSuffix(file, ".gz")
	for format := range Formats {
		if strings.HasSuffix(name, "."+format) {
			return format, nil
		}
	}
	return "", nil
}

// withPairs opens an input and closes it after use returns. whole reports whether the input is a
// file, which never blocks.
func withPairs(
	ctx context.Context, a *console.Console, name, format string, use func(in pairs, whole bool, bar *progress.Bar) error,
) error {
	if format == "hfile" {
		bar := a.Bar(progress.Options{What: "load", Counted: "rows"})
		defer bar.Stop()
		return pairError(hfilecmd.With(ctx, a, name, func(r *hfile.Reader) error {
			return use(kvlines.HFile(r), true, bar)
		}))
	}
	o := load.Options{Name: name}
	if format == "csv" {
		o.Format = load.CSV
	} else if format == "jsonl" {
		o.Format = load.JSONL
	}
	in, err := loadcmd.Open(ctx, a, &loadcmd.Flags{}, &o)
	if err != nil {
		return err
	}
	defer in.Close()
	empty := false
	if o.Format == 0 {
		head, err := in.Head()
		if bytes.HasPrefix(head, []byte("DATABLK*")) {
			return fmt.Errorf("%s: this is an HFile: add --input-format hfile", name)
		}
		empty = err == nil && len(loadcmd.TrimStart(head)) == 0
	}
	if err := in.Sniff(&o); err != nil {
		return err
	}
	if empty {
		o.Format = load.JSONL // which needs no header
	}
	if o.Format == load.JSONL {
		return use(kvlines.JSON(name, in), in.Whole, in.Bar)
	}
	return use(kvlines.CSV(name, in), in.Whole, in.Bar)
}

// pairError gives an error about an HFile that is loaded its exit code: unlike in the verbs that
// show HFiles, what is not supported is no damage.
func pairError(err error) error {
	if errors.Is(err, oribi.ErrUnsupported) && !errors.Is(err, oribi.ErrCorrupt) {
		if f, ok := errors.AsType[*exit.Failure](err); ok {
			err = f.Err
		}
		return exit.With(exit.Failed, err)
	}
	return err
}

// Export is the verb "oribi kv export".
func Export(a *console.Console) *cobra.Command {
	var bucket string
	f := exportcmd.Flags{Format: "hfile"}
	c := verb.New(a, "export DIR OUT", "Write keys and values to a new HFile, in Hudi's form",
		func(cmd *cobra.Command, args []string) error {
			if args[1] == "-" {
				return exit.Usage(errors.New("kv export: OUT is a file: an HFile is not written to standard output"))
			}
			e := &exportcmd.Job{Console: a, Context: cmd.Context(), Flags: &f, Changed: func(flag string) bool {
				return flag == "format"
			}, Out: args[1]}
			if err := e.Check(args[0]); err != nil {
				return err
			}
			return e.Run(func(use func(*oribi.Table) error) error {
				return withBucket(args[0], bucket, access.Reading, func(b *kv.Bucket) error { return use(b.Table()) })
			})
		})
	bucketFlag(c, &bucket)
	flags.AsOf(c, &f.AsOf)
	return c
}
