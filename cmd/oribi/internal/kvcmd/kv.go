// Package kvcmd has the verbs of "oribi kv".
package kvcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/hfilecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/kvlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/schema"
)

// defaultBucket is the bucket of commands without --bucket.
const defaultBucket = "default"

func bucketFlag(c *cobra.Command, name *string) {
	c.Flags().StringVar(name, "bucket", defaultBucket, "name of the bucket")
}

// checkBucket refuses what cannot be the name of a bucket.
func checkBucket(name string) error {
	if err := schema.CheckName(name); err != nil {
		return exit.Usage(fmt.Errorf("--bucket: %w", err))
	}
	return nil
}

// withBucket opens an existing bucket.
func withBucket(dir, name string, at access.Mode, use func(*kv.Bucket) error) error {
	if err := checkBucket(name); err != nil {
		return err
	}
	return access.WithOptions(dir, at, oribi.Options{CellLimit: kv.MaxValueBytes}, func(store *oribi.Store) error {
		b, err := kv.In(store).Bucket(name)
		if err != nil {
			return bucketError(name, exit.Missing, err)
		}
		return use(b)
	})
}

// bucketError is the error for a bucket that cannot be opened, with an exit code for a table that
// is not a bucket.
func bucketError(name string, code int, err error) error {
	switch {
	case errors.Is(err, kv.ErrBucketNotFound):
		return exit.With(exit.Missing, fmt.Errorf("bucket %q: no such bucket", name))
	case errors.Is(err, kv.ErrNotBucket):
		return exit.With(code, fmt.Errorf("bucket %q: the table of that name is not a bucket", name))
	}
	return err
}

// makingBucket opens a bucket and makes it, and its store, if they are missing. A new store keeps
// history forever, as after "store init". If use fails, a new store or bucket is removed again,
// unless it has keys.
func makingBucket(dir, name string, at access.Mode, use func(*kv.DB, *kv.Bucket) error) error {
	if err := checkBucket(name); err != nil {
		return err
	}
	o := oribi.Options{MemoryLimit: access.MemoryLimit, History: oribi.HistoryForever}
	_, missing := os.Stat(dir)
	var db *kv.DB
	made := false
	err := at.Open(func() (err error) {
		o.ErrorIfExists = true
		db, err = kv.Open(dir, &o)
		made = err == nil
		if errors.Is(err, oribi.ErrExists) {
			o.ErrorIfExists = false
			db, err = kv.Open(dir, &o)
		}
		return err
	})
	if errors.Is(err, oribi.ErrNotStore) {
		return exit.With(exit.Failed, err) // the directory has other content: nothing is missing
	}
	if err != nil {
		return access.DamageHint(dir, err)
	}
	err = useBucket(db, name, use)
	if made && err != nil && len(db.Store().Tables()) == 0 {
		// No other process can have opened the store, which is still locked.
		err = errors.Join(err, removeStore(db.Store(), dir, missing != nil))
		db.Close() // fails, since there is no LOCK
		return err
	}
	return access.DamageHint(dir, errors.Join(err, db.Close()))
}

// removeStore removes the files of an open store, and its directory if itself is set. Files that
// are not the store's stay, in their directories.
func removeStore(store *oribi.Store, dir string, itself bool) error {
	usage, err := store.DiskUsage()
	if err != nil {
		return err
	}
	kept := map[string]bool{} // directories with files that stay
	if !itself {
		kept["."] = true
	}
	for _, f := range usage.Files {
		if f.Kind == "foreign" {
			for name := f.Name; name != "."; name = path.Dir(name) {
				kept[name] = true
			}
			kept["."] = true
		}
	}
	for _, f := range slices.Backward(usage.Files) { // a directory comes before what is in it
		if !kept[f.Name] {
			removed := os.Remove(filepath.Join(dir, filepath.FromSlash(f.Name)))
			if !errors.Is(removed, fs.ErrNotExist) { // the store removes files that it needs no more, too
				err = errors.Join(err, removed)
			}
		}
	}
	return err
}

// useBucket calls use with a bucket, which it makes if it is missing. If use fails, it removes a
// bucket that it has made and that is empty.
func useBucket(db *kv.DB, name string, use func(*kv.DB, *kv.Bucket) error) error {
	_, missing := db.Bucket(name)
	b, err := db.CreateBucketIfNotExists(name)
	if err != nil {
		return bucketError(name, exit.Failed, err)
	}
	if err = use(db, b); err == nil || !errors.Is(missing, kv.ErrBucketNotFound) {
		return err
	}
	for range b.Keys(context.Background(), oribi.Limit(1)) {
		return err // there is a key, or the keys cannot be read
	}
	return errors.Join(err, db.DeleteBucket(name))
}

// Put is the verb "oribi kv put".
func Put(a *console.Console) *cobra.Command {
	var bucket, ttl string
	c := verb.New(a, "put DIR KEY VALUE", "Set the value of a key", func(cmd *cobra.Command, args []string) error {
		lasts := when.Forever
		if cmd.Flags().Changed("ttl") {
			var err error
			if lasts, err = when.ParseAge(ttl); err != nil {
				return exit.Usage(fmt.Errorf("--ttl: %w", err))
			}
		}
		key, err := kvBytes("KEY", args[1])
		if err != nil {
			return err
		}
		value, err := kvValue(a, args[2])
		if err != nil {
			return err
		}
		if err := kvlines.Check(kv.Pair{Key: key, Value: value}); err != nil {
			return exit.Usage(err)
		}
		return makingBucket(args[0], bucket, access.Writing(cmd), func(_ *kv.DB, b *kv.Bucket) error {
			var err error
			if lasts == when.Forever {
				_, err = b.Put(cmd.Context(), key, value)
			} else {
				_, err = b.PutTTL(cmd.Context(), key, value, lasts)
			}
			return err
		})
	})
	c.Long = c.Short + `. The store and the bucket are made if they are missing.

KEY and VALUE are text, or bytes as 0x and hex. The VALUE - is all of stdin.`
	bucketFlag(c, &bucket)
	c.Flags().StringVar(&ttl, "ttl", "", "when the key expires: 90s, 5m, 2h, 7d from now (default: never)")
	return c
}

// kvValue returns the value that an argument means.
func kvValue(a *console.Console, text string) ([]byte, error) {
	if text != "-" {
		return kvBytes("VALUE", text)
	}
	value, err := io.ReadAll(io.LimitReader(a.Stdin, kv.MaxValueBytes+1))
	if err == nil && len(value) > kv.MaxValueBytes {
		err = fmt.Errorf("longer than %d bytes", kv.MaxValueBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	return value, nil
}

// Delete is the verb "oribi kv delete".
func Delete(a *console.Console) *cobra.Command {
	var bucket string
	c := verb.New(a, "delete DIR KEY", "Remove a key, if it exists", func(cmd *cobra.Command, args []string) error {
		key, err := kvBytes("KEY", args[1])
		if err != nil {
			return err
		}
		if err := kvlines.Check(kv.Pair{Key: key}); err != nil {
			return exit.Usage(err)
		}
		return withBucket(args[0], bucket, access.Writing(cmd), func(b *kv.Bucket) error {
			_, err := b.Delete(cmd.Context(), key)
			return err
		})
	})
	bucketFlag(c, &bucket)
	return c
}

// Get is the verb "oribi kv get".
func Get(a *console.Console) *cobra.Command {
	var bucket, at string
	var raw bool
	c := verb.New(a, "get DIR KEY", "Print the value of a key", func(cmd *cobra.Command, args []string) error {
		key, err := kvBytes("KEY", args[1])
		if err != nil {
			return err
		}
		state, err := flags.ParseAsOf(cmd.Context(), at)
		if err != nil {
			return err
		}
		return withBucket(args[0], bucket, access.Reading, func(b *kv.Bucket) error {
			value, err := b.Get(cmd.Context(), key, state)
			if err != nil {
				return noKey(b, key, err)
			}
			if !raw {
				value = append(kvlines.AppendText(nil, value), '\n')
			}
			_, err = a.Stdout.Write(value)
			return err
		})
	})
	c.Long = c.Short + `, and a newline.

A value that is not text, or begins with 0x, is printed as 0x and hex.`
	bucketFlag(c, &bucket)
	flags.AsOf(c, &at)
	c.Flags().BoolVar(&raw, "raw", false, "print the bytes of the value and nothing else")
	return c
}

// noKey names a key that does not exist as the command prints keys.
func noKey(b *kv.Bucket, key []byte, err error) error {
	if errors.Is(err, kv.ErrNotFound) {
		return exit.With(exit.Missing, fmt.Errorf("bucket %q: key %s: not found", b.Name(), kvlines.KeyText(key)))
	}
	return err
}

// kvRange are the flags of "kv scan" that choose keys.
type kvRange struct {
	prefix, from, to string
	reverse          bool
	limit            int64
}

func (f *kvRange) options(cmd *cobra.Command) ([]oribi.ScanOption, error) {
	var options []oribi.ScanOption
	for _, bound := range []struct {
		flag, text string
		option     func(key any) oribi.RangeOption
	}{{"prefix", f.prefix, oribi.Prefix}, {"from", f.from, oribi.From}, {"to", f.to, oribi.To}} {
		if !cmd.Flags().Changed(bound.flag) {
			continue
		}
		b, err := kvBytes("--"+bound.flag, bound.text)
		if err != nil {
			return nil, err
		}
		options = append(options, bound.option(b))
	}
	if f.reverse {
		options = append(options, oribi.Desc())
	}
	if cmd.Flags().Changed("limit") {
		if f.limit < 1 {
			return nil, exit.Usage(fmt.Errorf("--limit: want at least 1, not %d", f.limit))
		}
		options = append(options, oribi.Limit(f.limit))
	}
	return options, nil
}

// Scan is the verb "oribi kv scan".
func Scan(a *console.Console) *cobra.Command {
	var bucket, at string
	var f kvRange
	var keysOnly bool
	c := verb.Printing(a, "scan DIR", "Print keys and values, in the order of keys",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			state, err := flags.ParseAsOf(cmd.Context(), at)
			if err != nil {
				return err
			}
			options, err := f.options(cmd)
			if err != nil {
				return err
			}
			options = append(options, state)
			return withBucket(args[0], bucket, access.Reading, func(b *kv.Bucket) error {
				if keysOnly {
					p := a.Objects(form, hfilecmd.KeyValueColumns[:1])
					return console.Ended(printKeys(p, b, cmd, options), p)
				}
				p := a.Objects(form, hfilecmd.KeyValueColumns)
				return console.Ended(printPairs(p, b, cmd, options), p)
			})
		})
	bucketFlag(c, &bucket)
	flags.AsOf(c, &at)
	c.Flags().StringVar(&f.prefix, "prefix", "", "print only keys that begin with this, 0x… for bytes")
	c.Flags().StringVar(&f.from, "from", "", "first key, 0x… for bytes")
	c.Flags().StringVar(&f.to, "to", "", "key before which to stop, 0x… for bytes")
	c.Flags().BoolVar(&f.reverse, "reverse", false, "print the last key first; --limit takes the last ones")
	c.Flags().Int64Var(&f.limit, "limit", 0, "maximum number of keys to print")
	c.Flags().BoolVar(&keysOnly, "keys-only", false, "do not read and print values")
	return c
}

func printPairs(p *console.Objects, b *kv.Bucket, cmd *cobra.Command, options []oribi.ScanOption) error {
	return console.PrintEntries(cmd.Context(), p, b.Scan(cmd.Context(), options...), 0,
		func(line []byte, pair *kv.Pair) ([]byte, error) {
			line = kvlines.AppendJSON(append(line, `{"key":`...), pair.Key)
			line = kvlines.AppendJSON(append(line, `,"value":`...), pair.Value)
			return append(line, '}'), nil
		})
}

func printKeys(p *console.Objects, b *kv.Bucket, cmd *cobra.Command, options []oribi.ScanOption) error {
	return console.PrintEntries(cmd.Context(), p, b.Keys(cmd.Context(), options...), 0,
		func(line []byte, key *[]byte) ([]byte, error) {
			return append(kvlines.AppendJSON(append(line, `{"key":`...), *key), '}'), nil
		})
}

// History is the verb "oribi kv history".
func History(a *console.Console) *cobra.Command {
	var bucket string
	c := verb.Printing(a, "history DIR KEY", "Print the versions of a key, newest first",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			key, err := kvBytes("KEY", args[1])
			if err != nil {
				return err
			}
			return withBucket(args[0], bucket, access.Reading, func(b *kv.Bucket) error {
				p := a.Objects(form, console.TextColumns([]string{"ts"}, "ts", "op", "value"))
				var line []byte
				for v, err := range b.History(cmd.Context(), key) {
					if err != nil {
						return noKey(b, key, console.Ended(err, p))
					}
					line = appendVersion(line[:0], &v)
					if err := p.Print(line); err != nil {
						return err
					}
				}
				return p.Close()
			})
		})
	c.Long = c.Short + `. A key that expires gets no version by that.

The timestamp of a value that is older than the history that the bucket keeps is null.`
	bucketFlag(c, &bucket)
	return c
}

func appendVersion(line []byte, v *kv.Version) []byte {
	line = append(line, `{"ts":`...)
	if v.Timestamp == 0 {
		line = append(line, "null"...)
	} else {
		line = strconv.AppendUint(line, uint64(v.Timestamp), 10)
	}
	if v.Deleted {
		return append(line, `,"op":"delete","value":null}`...)
	}
	return append(kvlines.AppendJSON(append(line, `,"op":"put","value":`...), v.Value), '}')
}

// Buckets is the verb "oribi kv buckets".
func Buckets(a *console.Console) *cobra.Command {
	return verb.Printing(a, "buckets DIR", "List buckets",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				return printBuckets(a, cmd, kv.In(store).Buckets(), form)
			})
		})
}

func printBuckets(a *console.Console, cmd *cobra.Command, buckets []*kv.Bucket, form output.Format) error {
	rows := batch.New([]schema.Column{{Name: "bucket", Type: schema.String}, {Name: "keys", Type: schema.Int64},
		{Name: "bytes", Type: schema.Int64}}, len(buckets))
	for i, b := range buckets {
		keys, err := b.Table().Count(cmd.Context())
		if err != nil {
			return err
		}
		stats, err := b.Table().Stats(false)
		if err != nil {
			return err
		}
		rows.Columns[0].SetCell(i, []byte(b.Name()))
		batch.Values[int64](rows.Columns[1])[i] = keys
		batch.Values[int64](rows.Columns[2])[i] = stats.Bytes
	}
	return a.PrintBatch(rows, form, "bytes")
}

// kvBytes parses a key or value on the command line.
func kvBytes(what, text string) ([]byte, error) {
	b, err := kvlines.Parse(text)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s: %w", what, err))
	}
	return b, nil
}
