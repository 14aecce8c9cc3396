// Package kuducmd has the verbs of "oribi kudu".
package kuducmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/tablecmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// withKudu opens the directories of a Kudu server. Its warnings go to stderr.
func withKudu(a *console.Console, dir string, use func(*kudu.Directory) error) error {
	d, err := kudu.Open(dir, kudu.Options{Warn: kuduWarnings(a)})
	if err == nil {
		err = errors.Join(use(d), d.Close())
	}
	if errors.Is(err, kudu.ErrUnsupported) {
		return exit.With(exit.Damage, err)
	}
	return err
}

// kuduWarnings returns a function that prints a warning to stderr.
func kuduWarnings(a *console.Console) func(text string) {
	return func(text string) { fmt.Fprintf(a.Stderr, "oribi: warning: %s\n", celltext.Printable(text)) }
}

// withKuduTable opens a table or tablet of a Kudu server.
func withKuduTable(ctx context.Context, a *console.Console, dir, what string, use func(*kudu.Table) error) error {
	return withKudu(a, dir, func(d *kudu.Directory) error {
		t, err := d.Open(ctx, what)
		if err != nil {
			return err
		}
		return errors.Join(use(t), t.Close())
	})
}

// List is the verb "oribi kudu list".
func List(a *console.Console) *cobra.Command {
	return verb.Printing(a, "list FS", "List the tablets of a server's directory",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return withKudu(a, args[0], func(d *kudu.Directory) error { return listTablets(cmd.Context(), a, d, form) })
		})
}

// listTablets prints a line per tablet. Those that cannot be read are left out; their first error
// is returned.
func listTablets(ctx context.Context, a *console.Console, d *kudu.Directory, form output.Format) error {
	r := a.Records(form, []output.Group{
		{Columns: []schema.Column{{Name: "tablet", Type: schema.String}, {Name: "table", Type: schema.String},
			{Name: "state", Type: schema.String},
			{Name: "rowsets", Type: schema.Int64}, {Name: "rows", Type: schema.Int64, Nullable: true},
			{Name: "bytes", Type: schema.Int64}, {Name: "log_bytes", Type: schema.Int64}}},
	}, "bytes", "log_bytes")
	some := false
	var first error
	for _, t := range d.Tablets() {
		s, err := d.Sizes(ctx, &t)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		var rows []byte
		if s.Rows >= 0 {
			rows = console.Int64Cell(s.Rows)
		}
		some = true
		r.Add([][]byte{[]byte(t.ID), []byte(t.Table), []byte(t.State), console.Int64Cell(int64(s.RowSets)), rows,
			console.Int64Cell(s.Bytes), console.Int64Cell(s.LogBytes)}, 7)
		if err := r.Write(); err != nil {
			return err
		}
	}
	return r.End(some, first)
}

// Describe is the verb "oribi kudu describe".
func Describe(a *console.Console) *cobra.Command {
	return verb.New(a, "describe FS WHAT",
		"Print the schema, partitions, rowsets, and blocks of a table or tablet as JSON",
		func(_ *cobra.Command, args []string) error {
			return withKudu(a, args[0], func(d *kudu.Directory) error {
				about, err := d.Describe(args[1])
				if err != nil {
					return err
				}
				var text strings.Builder
				e := json.NewEncoder(&text)
				e.SetEscapeHTML(false)
				err = e.Encode(struct {
					*kudu.Description
					Columns json.RawMessage `json:"columns"`
				}{about, schemafile.AppendColumns(nil, about.Schema.Columns, about.Schema.Keys)})
				if err != nil {
					return err
				}
				return a.Printf("%s", text.String())
			})
		})
}

// kuduTime is a point in time on the command line, which is checked when the table is known.
type kuduTime struct {
	flag  string
	ts    mvcc.Timestamp
	error error // of an integer that may be the time of old data
}

// parseKuduTime parses the value of a flag.
func parseKuduTime(flag, word string) (t kuduTime, err error) {
	t.flag = flag
	if t.ts, err = when.ParseRead(word, time.Now()); err == nil {
		return t, nil
	}
	err = exit.Usage(fmt.Errorf("--%s: %w", flag, err))
	if n, bad := strconv.ParseUint(word, 10, 64); bad == nil && n < uint64(when.Latest) {
		return kuduTime{flag, mvcc.Timestamp(n), err}, nil
	}
	return t, err
}

// snapshot returns what a read of a table at t sees.
func (t kuduTime) snapshot(table *kudu.Table) (mvcc.Snapshot, error) {
	newest := table.Newest()
	switch {
	case t.ts == when.Latest:
		return mvcc.Everything, nil
	case t.error != nil && t.ts > newest: // the data are not that old
		return 0, t.error
	case t.error != nil && newest.Time().Year() >= 2000:
		return 0, t.error
	case t.ts > newest && t.ts > mvcc.EndOf(time.Now()):
		return 0, exit.Usage(fmt.Errorf("--%s: %d is ahead of the clock and of the newest operation", t.flag, uint64(t.ts)))
	}
	return mvcc.AsOf(t.ts), nil
}

// Scan is the verb "oribi kudu scan".
func Scan(a *console.Console) *cobra.Command {
	var f flags.Select
	c := verb.Printing(a, "scan FS WHAT", "Print the rows of a table or tablet",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			at, err := parseKuduTime("as-of", f.AsOf)
			if err != nil {
				return err
			}
			if err := f.Check(cmd, false); err != nil {
				return err
			}
			return withKuduTable(cmd.Context(), a, args[0], args[1], func(t *kudu.Table) error {
				o, err := kuduOptions(&f, t, cmd.Flags().Changed)
				if err != nil {
					return err
				}
				if o.Snapshot, err = at.snapshot(t); err != nil {
					return err
				}
				e := flags.Explanation(f.Explain)
				limited := func(it scan.Iterator) scan.Iterator { return scan.Limit(it, limitOf(f.Limit)) }
				if e != nil {
					where, err := flags.Predicates(t.Schema.Columns, f.Where)
					if err != nil {
						return err
					}
					limited = oribi.ExplainScan(e, t.Name, t.Schema, where, &o)
				}
				it, err := t.Scan(o, f.Order == "key")
				if err == nil {
					err = printKuduRows(cmd.Context(), a, limited(it), form, t.Schema, o.Columns)
				}
				if err == nil {
					flags.PrintExplanation(a, e)
				}
				return err
			})
		})
	flags.AsOf(c, &f.AsOf)
	f.Add(c)
	return c
}

// limitOf returns the number of rows of a scan whose flag --limit is n; 0 means all.
func limitOf(n int64) int64 {
	if n == 0 {
		return 1<<63 - 1
	}
	return n
}

// kuduOptions returns the options of a scan, without the time.
func kuduOptions(f *flags.Select, t *kudu.Table, changed func(flag string) bool) (o scan.Options, err error) {
	s := t.Schema
	columns, err := flags.Chosen(s, "columns", f.Columns, changed("columns"))
	if err != nil {
		return o, err
	}
	o = scan.Options{Descending: f.Reverse, Limit: f.Limit, Columns: []int{}}
	for _, c := range columns {
		o.Columns = append(o.Columns, s.IndexID(c.ID))
	}
	where, err := flags.Predicates(s.Columns, f.Where)
	if err == nil {
		o.Filter, err = oribi.And(where...).Bind(s)
	}
	if err != nil {
		return o, err
	}
	encoder := keyenc.NewEncoder(s)
	for _, bound := range []struct {
		flag, text string
		key        *[]byte
	}{{"from-key", f.From, &o.Lower}, {"to-key", f.To, &o.Upper}} {
		if !changed(bound.flag) {
			continue
		}
		cells, err := cell.Key(s, bound.text, true)
		if err != nil {
			return o, exit.Usage(fmt.Errorf("--%s: %w", bound.flag, err))
		}
		*bound.key = encoder.AppendPrefix([]byte{}, cells)
	}
	return o, nil
}

// printKuduRows prints all batches of an iterator and closes it.
func printKuduRows(
	ctx context.Context, a *console.Console, it scan.Iterator, form output.Format, s *schema.Schema, cols []int,
) error {
	var columns []schema.Column
	for _, c := range cols {
		columns = append(columns, s.Columns[c])
	}
	w := a.Writer(form, columns)
	var err error
	for err == nil && it.Next() {
		if err = ctx.Err(); err == nil {
			err = w.Write(it.Batch())
		}
	}
	if err = errors.Join(err, it.Close()); err != nil {
		w.Flush() // report the scan's error instead
		return err
	}
	return w.Close()
}

// Diff is the verb "oribi kudu diff".
func Diff(a *console.Console) *cobra.Command {
	var from, to string
	c := verb.Printing(a, "diff FS WHAT", "Print the rows that were changed between two timestamps",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			var times [2]kuduTime
			var err error
			for i, flag := range [2]struct{ name, word string }{{"from", from}, {"to", to}} {
				if times[i], err = parseKuduTime(flag.name, flag.word); err != nil {
					return err
				}
			}
			if times[0].ts > times[1].ts {
				return exit.Usage(errors.New("--from is later than --to"))
			}
			return withKuduTable(cmd.Context(), a, args[0], args[1], func(t *kudu.Table) error {
				begin, err := times[0].snapshot(t)
				if err != nil {
					return err
				}
				end, err := times[1].snapshot(t)
				if err != nil {
					return err
				}
				return printKuduDiff(cmd.Context(), a, t, begin, end, form)
			})
		})
	flags.Time(c, &from, "from", "", "changes after this time")
	flags.Time(c, &to, "to", "latest", "the last time whose changes are included")
	verb.Require(c, "from")
	return c
}

// printKuduDiff prints the rows with changes that to sees and from does not.
func printKuduDiff(
	ctx context.Context, a *console.Console, t *kudu.Table, from, to mvcc.Snapshot, form output.Format,
) (err error) {
	s := t.Schema
	r := a.Records(form, []output.Group{
		{Columns: []schema.Column{{Name: "deleted", Type: schema.Bool}}},
		{Name: "row", Columns: console.Nullable(s.Columns), Omit: true},
		{Name: "key", Columns: console.Nullable(s.Columns[:s.Keys]), Omit: true},
	})
	cols := make([]int, len(s.Columns))
	for i := range cols {
		cols[i] = i
	}
	d, err := t.Diff(from, to, cols)
	if err != nil {
		return err
	}
	some := false
	for d.Next() {
		if err := ctx.Err(); err != nil {
			return r.End(some, errors.Join(err, d.Close()))
		}
		row, key := d.After(), [][]byte(nil)
		if row == nil {
			key = d.Before()[:s.Keys]
		}
		r.Add([][]byte{console.CellOf(row == nil)}, 1)
		r.Add(row, len(s.Columns))
		r.Add(key, s.Keys)
		some = true
		if err := r.Write(); err != nil {
			return errors.Join(err, d.Close())
		}
	}
	return r.End(some, d.Close())
}

// History is the verb "oribi kudu history".
func History(a *console.Console) *cobra.Command {
	c := verb.Printing(a, "history FS WHAT KEY", "Print all versions of a row, newest first",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return withKuduTable(cmd.Context(), a, args[0], args[1], func(t *kudu.Table) error {
				cells, err := cell.Key(t.Schema, args[2], false)
				if err != nil {
					return exit.Usage(fmt.Errorf("key: %w", err))
				}
				key := keyenc.NewEncoder(t.Schema).AppendKey(nil, cells)
				return tablecmd.PrintVersions(a, form, t.Schema, kuduVersions(t, key))
			})
		})
	return c
}

// kuduVersions returns the versions of a row in the form of package oribi.
func kuduVersions(t *kudu.Table, key []byte) iter.Seq2[oribi.Version, error] {
	return func(yield func(oribi.Version, error) bool) {
		err := t.History(key, func(v kudu.Version) bool {
			kind := oribi.Updated
			switch {
			case v.TS == 0:
				kind = oribi.Base
			case v.Cells == nil:
				kind = oribi.Deleted
			case !v.Before:
				kind = oribi.Inserted
			}
			return yield(oribi.Version{Timestamp: v.TS, Kind: kind, Columns: t.Schema.Columns, Cells: v.Cells}, nil)
		})
		if err != nil {
			yield(oribi.Version{}, err)
		}
	}
}

// glanceKudu calls look with the directory that the first argument names, if it can be opened.
func glanceKudu(args []string, look func(*kudu.Directory)) {
	if len(args) == 0 {
		return
	}
	if d, err := kudu.Open(args[0], kudu.Options{}); err == nil {
		look(d)
		d.Close() // reading is complete: an error of Close does not matter
	}
}

// CompleteTablets completes the argument WHAT after FS, the name of a table or the ID of a tablet;
// all other arguments by rest.
func CompleteTablets(rest verb.Completer) verb.Completer {
	return func(cmd *cobra.Command, args []string, typed string) (list []string, _ cobra.ShellCompDirective) {
		if len(args) != 1 {
			return rest(cmd, args, typed)
		}
		glanceKudu(args, func(d *kudu.Directory) {
			for _, t := range d.Tablets() {
				list = append(list, t.Table, t.ID)
			}
		})
		slices.Sort(list)
		list = slices.DeleteFunc(slices.Compact(list), func(name string) bool { return name == "" })
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// Complete completes names of columns by complete.
func Complete(complete func(names []string, typed string) ([]string, cobra.ShellCompDirective)) verb.Completer {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		var names []string
		glanceKudu(args, func(d *kudu.Directory) {
			if len(args) < 2 {
				return
			}
			if about, err := d.Describe(args[1]); err == nil {
				names = about.Schema.Names()
			}
		})
		return complete(names, typed)
	}
}
