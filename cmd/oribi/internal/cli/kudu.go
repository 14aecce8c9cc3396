package cli

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
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
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
func (a *app) withKudu(dir string, use func(*kudu.Directory) error) error {
	d, err := kudu.Open(dir, kudu.Options{Warn: a.kuduWarnings()})
	if err == nil {
		err = errors.Join(use(d), d.Close())
	}
	if errors.Is(err, kudu.ErrUnsupported) {
		return withCode(exitDamage, err)
	}
	return err
}

// kuduWarnings returns a function that prints a warning to stderr.
func (a *app) kuduWarnings() func(text string) {
	return func(text string) { fmt.Fprintf(a.stderr, "oribi: warning: %s\n", celltext.Printable(text)) }
}

// withKuduTable opens a table or tablet of a Kudu server.
func (a *app) withKuduTable(ctx context.Context, dir, what string, use func(*kudu.Table) error) error {
	return a.withKudu(dir, func(d *kudu.Directory) error {
		t, err := d.Open(ctx, what)
		if err != nil {
			return err
		}
		return errors.Join(use(t), t.Close())
	})
}

func (a *app) kuduList() *cobra.Command {
	var format string
	c := a.verb("list FS", "List the tablets of a server's directory", func(cmd *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		return a.withKudu(args[0], func(d *kudu.Directory) error { return a.listTablets(cmd.Context(), d, form) })
	})
	formatFlag(c, &format)
	return c
}

// listTablets prints a line per tablet. Those that cannot be read are left out; their first error
// is returned.
func (a *app) listTablets(ctx context.Context, d *kudu.Directory, form output.Format) error {
	r := a.records(form, []output.Group{
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
			rows = int64Cell(s.Rows)
		}
		some = true
		r.add([][]byte{[]byte(t.ID), []byte(t.Table), []byte(t.State), int64Cell(int64(s.RowSets)), rows,
			int64Cell(s.Bytes), int64Cell(s.LogBytes)}, 7)
		if err := r.write(); err != nil {
			return err
		}
	}
	return r.end(some, first)
}

func (a *app) kuduDescribe() *cobra.Command {
	return a.verb("describe FS WHAT", "Print the schema, partitions, rowsets, and blocks of a table or tablet as JSON",
		func(_ *cobra.Command, args []string) error {
			return a.withKudu(args[0], func(d *kudu.Directory) error {
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
				return a.printf("%s", text.String())
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
	err = usage(fmt.Errorf("--%s: %w", flag, err))
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
		return 0, usage(fmt.Errorf("--%s: %d is ahead of the clock and of the newest operation", t.flag, uint64(t.ts)))
	}
	return mvcc.AsOf(t.ts), nil
}

func (a *app) kuduScan() *cobra.Command {
	var f selectFlags
	var format string
	c := a.verb("scan FS WHAT", "Print the rows of a table or tablet", func(cmd *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		at, err := parseKuduTime("as-of", f.asOf)
		if err != nil {
			return err
		}
		if err := f.check(cmd, false); err != nil {
			return err
		}
		return a.withKuduTable(cmd.Context(), args[0], args[1], func(t *kudu.Table) error {
			o, err := f.kuduOptions(t, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if o.Snapshot, err = at.snapshot(t); err != nil {
				return err
			}
			e := explanation(f.explain)
			limited := func(it scan.Iterator) scan.Iterator { return scan.Limit(it, limitOf(f.limit)) }
			if e != nil {
				where, err := whereAll(t.Schema.Columns, f.where)
				if err != nil {
					return err
				}
				limited = oribi.ExplainScan(e, t.Name, t.Schema, where, &o)
			}
			it, err := t.Scan(o, f.order == "key")
			if err == nil {
				err = a.printKuduRows(cmd.Context(), limited(it), form, t.Schema, o.Columns)
			}
			if err == nil {
				a.printExplanation(e)
			}
			return err
		})
	})
	formatFlag(c, &format)
	asOfFlag(c, &f.asOf)
	f.add(c)
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
func (f *selectFlags) kuduOptions(t *kudu.Table, changed func(flag string) bool) (o scan.Options, err error) {
	s := t.Schema
	columns, err := chosen(s, "columns", f.columns, changed("columns"))
	if err != nil {
		return o, err
	}
	o = scan.Options{Descending: f.reverse, Limit: f.limit, Columns: []int{}}
	for _, c := range columns {
		o.Columns = append(o.Columns, s.IndexID(c.ID))
	}
	where, err := whereAll(s.Columns, f.where)
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
	}{{"from-key", f.from, &o.Lower}, {"to-key", f.to, &o.Upper}} {
		if !changed(bound.flag) {
			continue
		}
		cells, err := cell.Key(s, bound.text, true)
		if err != nil {
			return o, usage(fmt.Errorf("--%s: %w", bound.flag, err))
		}
		*bound.key = encoder.AppendPrefix([]byte{}, cells)
	}
	return o, nil
}

// printKuduRows prints all batches of an iterator and closes it.
func (a *app) printKuduRows(
	ctx context.Context, it scan.Iterator, form output.Format, s *schema.Schema, cols []int,
) error {
	var columns []schema.Column
	for _, c := range cols {
		columns = append(columns, s.Columns[c])
	}
	w := a.writer(form, columns)
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

func (a *app) kuduDiff() *cobra.Command {
	var format, from, to string
	c := a.verb("diff FS WHAT", "Print the rows that were changed between two timestamps",
		func(cmd *cobra.Command, args []string) error {
			form, err := a.format(format)
			if err != nil {
				return err
			}
			var times [2]kuduTime
			for i, flag := range [2]struct{ name, word string }{{"from", from}, {"to", to}} {
				if times[i], err = parseKuduTime(flag.name, flag.word); err != nil {
					return err
				}
			}
			if times[0].ts > times[1].ts {
				return usage(errors.New("--from is later than --to"))
			}
			return a.withKuduTable(cmd.Context(), args[0], args[1], func(t *kudu.Table) error {
				begin, err := times[0].snapshot(t)
				if err != nil {
					return err
				}
				end, err := times[1].snapshot(t)
				if err != nil {
					return err
				}
				return a.printKuduDiff(cmd.Context(), t, begin, end, form)
			})
		})
	formatFlag(c, &format)
	timeFlag(c, &from, "from", "", "changes after this time")
	timeFlag(c, &to, "to", "latest", "the last time whose changes are included")
	if err := c.MarkFlagRequired("from"); err != nil {
		panic(err) // impossible: the flag exists
	}
	return c
}

// printKuduDiff prints the rows with changes that to sees and from does not.
func (a *app) printKuduDiff(
	ctx context.Context, t *kudu.Table, from, to mvcc.Snapshot, form output.Format,
) (err error) {
	s := t.Schema
	r := a.records(form, []output.Group{
		{Columns: []schema.Column{{Name: "deleted", Type: schema.Bool}}},
		{Name: "row", Columns: nullable(s.Columns), Omit: true},
		{Name: "key", Columns: nullable(s.Columns[:s.Keys]), Omit: true},
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
			return r.end(some, errors.Join(err, d.Close()))
		}
		row, key := d.After(), [][]byte(nil)
		if row == nil {
			key = d.Before()[:s.Keys]
		}
		r.add([][]byte{cellOf(row == nil)}, 1)
		r.add(row, len(s.Columns))
		r.add(key, s.Keys)
		some = true
		if err := r.write(); err != nil {
			return errors.Join(err, d.Close())
		}
	}
	return r.end(some, d.Close())
}

func (a *app) kuduHistory() *cobra.Command {
	var format string
	c := a.verb("history FS WHAT KEY", "Print all versions of a row, newest first",
		func(cmd *cobra.Command, args []string) error {
			form, err := a.format(format)
			if err != nil {
				return err
			}
			return a.withKuduTable(cmd.Context(), args[0], args[1], func(t *kudu.Table) error {
				cells, err := cell.Key(t.Schema, args[2], false)
				if err != nil {
					return usage(fmt.Errorf("key: %w", err))
				}
				key := keyenc.NewEncoder(t.Schema).AppendKey(nil, cells)
				return a.printVersions(form, t.Schema, kuduVersions(t, key))
			})
		})
	formatFlag(c, &format)
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

// completeTablets completes the argument WHAT after FS, the name of a table or the ID of a tablet; all
// other arguments by rest.
func completeTablets(rest completer) completer {
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

// completeKudu completes names of columns by complete.
func completeKudu(complete func(names []string, typed string) ([]string, cobra.ShellCompDirective)) completer {
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
