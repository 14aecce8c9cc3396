package kuducmd

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/kudu/live"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// clusterFlags say how to reach a cluster.
type clusterFlags struct {
	masters  []string
	user, ca string
	insecure bool
}

func (f *clusterFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.masters, "masters", nil, "addresses of the cluster's masters: HOST:PORT,…")
	c.Flags().StringVar(&f.user, "user", "", "name that the servers record (default: the name of the process's user)")
	c.Flags().StringVar(&f.ca, "ca", "", "file with the certificates, in PEM, that sign the servers' certificates")
	c.Flags().BoolVar(&f.insecure, "insecure", false, "allow servers whose certificates cannot be checked")
	verb.Require(c, "masters")
}

// withCluster calls use with a client of the cluster.
func (f *clusterFlags) withCluster(ctx context.Context, use func(*client.Client) error) (err error) {
	o := &client.Options{User: f.user, Insecure: f.insecure}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return err
		}
		if o.RootCAs = x509.NewCertPool(); !o.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--ca: %s has no certificates in PEM", f.ca)
		}
	}
	first, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	c, err := client.Connect(first, f.masters, o)
	if err == nil {
		defer c.Close() // what was written was flushed
		err = use(c)
	}
	return liveFailure(err)
}

// connectTime is how long a command looks for the leading master.
const connectTime = 15 * time.Second

// targetFlags say which table of a cluster is a copy's.
type targetFlags struct {
	clusterFlags
	table    string
	hash     []string
	ranges   string
	replicas int
	settle   time.Duration
}

func (f *targetFlags) add(c *cobra.Command) {
	f.clusterFlags.add(c)
	c.Flags().StringVar(&f.table, "table", "", "the table's name in the cluster (default: NAME)")
	c.Flags().StringArrayVar(&f.hash, "hash", nil,
		"divide a new table by a hash, as COL[,COL]:BUCKETS; may be repeated (default: by the key)")
	c.Flags().StringVar(&f.ranges, "range", "", "file with the ranges of a new table, as JSON")
	c.Flags().DurationVar(&f.settle, "settle", 11*time.Second,
		"after a copy that was killed: wait so long for its requests; servers keep them for 10 s")
	c.Flags().IntVar(&f.replicas, "replicas", 0, "replicas of each tablet of a new table (default: the cluster's)")
}

// partitioning returns how a new table is divided, nil without flags that say so.
func (f *targetFlags) partitioning(s *schema.Schema) (*client.Partitioning, error) {
	if len(f.hash) == 0 && f.ranges == "" {
		return nil, nil
	}
	p := &client.Partitioning{}
	for _, text := range f.hash {
		columns, count, ok := strings.Cut(text, ":")
		buckets, err := strconv.Atoi(count)
		if !ok || err != nil || buckets < 2 {
			return nil, exit.Usage(fmt.Errorf("--hash %s: want COL[,COL]:BUCKETS with 2 or more buckets, such as id:8", text))
		}
		h := client.Hash{Columns: strings.Split(columns, ","), Buckets: buckets}
		if _, err := s.Project(h.Columns); err != nil {
			return nil, exit.Usage(fmt.Errorf("--hash %s: %w", text, err))
		}
		p.Hash = append(p.Hash, h)
	}
	if f.ranges != "" {
		text, err := os.ReadFile(f.ranges)
		if err != nil {
			return nil, err
		}
		if err := readRanges(p, s, text); err != nil {
			return nil, exit.Usage(fmt.Errorf("--range %s: %w", f.ranges, err))
		}
	}
	return p, nil
}

// Push is the verb "oribi kudu push".
func Push(a *console.Console) *cobra.Command {
	var f targetFlags
	c := verb.New(a, "push DIR NAME", "Copy a table into a running Kudu cluster",
		func(cmd *cobra.Command, args []string) error {
			return f.withTarget(cmd.Context(), args, func(s *oribi.Store, t *oribi.Table, to live.Target) error {
				stats, err := t.Stats(false)
				if err != nil {
					return err
				}
				shown := &shownCopy{a: a, bar: a.Bar(progress.Options{What: "push", Total: stats.LiveRows})}
				defer shown.bar.Stop()
				p, err := live.Push(cmd.Context(), s, t, to, &live.Options{Settle: f.settle, Note: shown.note, Progress: shown.rows})
				shown.bar.Stop()
				if err != nil {
					return err
				}
				return a.Printf(`{"table":%s,"rows":%d,"ts":%d,"kudu_ts":%d}`+"\n", console.Quote(p.Table), p.Rows, p.Timestamp,
					p.Written)
			})
		})
	f.add(c)
	return c
}

// Sync is the verb "oribi kudu sync".
func Sync(a *console.Console) *cobra.Command {
	var f targetFlags
	var every time.Duration
	var once bool
	c := verb.New(a, "sync DIR NAME", "Copy a table into a running Kudu cluster, and follow its changes",
		func(cmd *cobra.Command, args []string) error {
			if every < 0 {
				return exit.Usage(fmt.Errorf("--status-every %v is negative", every))
			}
			return f.withTarget(cmd.Context(), args, func(s *oribi.Store, t *oribi.Table, to live.Target) error {
				shown := &shownCopy{a: a}
				if every == 0 {
					shown.bar = a.Bar(progress.Options{What: "sync"})
				}
				p := statusPrinter{a: a, every: every, shown: shown}
				err := live.Sync(cmd.Context(), s, t, to, &live.Options{Once: once, Settle: f.settle, Progress: p.print, Note: shown.note})
				shown.bar.Stop()
				if err == nil {
					err = errors.Join(p.last(), cmd.Context().Err())
				}
				return err
			})
		})
	f.add(c)
	c.Flags().DurationVar(&every, "status-every", 0, "print a line of status on stdout this often (default: at the end)")
	c.Flags().BoolVar(&once, "once", false, "end when nothing is behind")
	return c
}

// statusPrinter prints a line of status from time to time.
type statusPrinter struct {
	a      *console.Console
	every  time.Duration
	before time.Time
	status live.Status
	shown  *shownCopy
}

func (p *statusPrinter) print(s live.Status) {
	p.status = s
	p.shown.rows(s)
	if now := time.Now(); p.every > 0 && now.Sub(p.before) >= p.every {
		p.before = now
		p.last() // a reader that is gone is found at the end
	}
}

// last prints the last status.
func (p *statusPrinter) last() error {
	s := &p.status
	return p.a.Printf(`{"ts":%d,"kudu_ts":%d,"rows":%d,"lag_seconds":%.3f,"lag_rows":%d,"errors":%d}`+"\n", s.Timestamp,
		s.Written, s.Rows, s.Lag.Seconds(), s.Behind, s.Failed)
}

// withTarget opens a table for reading, next to its writer, and a cluster.
func (f *targetFlags) withTarget(
	ctx context.Context, args []string, use func(*oribi.Store, *oribi.Table, live.Target) error,
) error {
	if f.settle <= 0 {
		return exit.Usage(fmt.Errorf("--settle %v: want a time such as 11s", f.settle))
	}
	return access.WithStore(args[0], access.Reading, func(s *oribi.Store) error {
		t, err := access.OpenTable(s, args[1])
		if err != nil {
			return err
		}
		to := live.Target{Table: f.table, Replicas: f.replicas}
		if to.Partitioning, err = f.partitioning(t.Schema()); err != nil {
			return err
		}
		return f.withCluster(ctx, func(c *client.Client) error {
			to.Cluster = c
			return use(s, t, to)
		})
	})
}

// shownCopy shows on stderr how a copy goes on.
type shownCopy struct {
	a   *console.Console
	bar *progress.Bar
}

func (c *shownCopy) rows(s live.Status) { c.bar.Set(s.Rows) }

// note prints a note, after which the bar does not come back.
func (c *shownCopy) note(text string) {
	c.bar.Stop()
	fmt.Fprintf(c.a.Stderr, "oribi: %s\n", celltext.Printable(text))
}

// liveFailure gives errors of a cluster that a store could have too the exit code of a failure.
func liveFailure(err error) error {
	_, ofServer := errors.AsType[*kudurpc.Error](err)
	for _, e := range []error{live.ErrRefused, live.ErrOtherTable, client.ErrUnsupported, client.ErrNotCovered} {
		ofServer = ofServer || errors.Is(err, e)
	}
	if ofServer && !errors.Is(err, client.ErrNoTable) && !errors.Is(err, context.Canceled) {
		return exit.With(exit.Failed, err)
	}
	return err
}

// Pull is the verb "oribi kudu pull".
func Pull(a *console.Console) *cobra.Command {
	var f clusterFlags
	var at string
	var follow bool
	var o live.PullOptions
	c := verb.New(a, "pull TABLE DIR [NAME]", "Copy a table of a running Kudu cluster into a store",
		func(cmd *cobra.Command, args []string) error {
			ts, err := clusterTime("at", at)
			if err != nil {
				return err
			}
			o.At = ts
			name := ""
			if len(args) > 2 {
				name = args[2]
			}
			return access.WithStore(args[1], access.Writing(cmd), func(s *oribi.Store) error {
				return f.withCluster(cmd.Context(), func(c *client.Client) error {
					print := func(p live.Pulled) error {
						return a.Printf(`{"table":%s,"rows":%d,"kudu_ts":%d}`+"\n", console.Quote(p.Table), p.Rows, p.At)
					}
					if !follow {
						p, err := live.Pull(cmd.Context(), c, args[0], s, name, &o)
						if err != nil {
							return err
						}
						return print(p)
					}
					o.Progress = func(p live.Pulled) { print(p) }
					err := live.Follow(cmd.Context(), c, args[0], s, name, &o)
					return errors.Join(err, cmd.Context().Err())
				})
			})
		})
	f.add(c)
	flags.Time(c, &at, "at", "latest", "copy the rows as of this time of the cluster")
	c.Flags().BoolVar(&follow, "follow", false, "then read the changes of the cluster's table, until Ctrl-C")
	c.Flags().DurationVar(&o.Interval, "interval", 5*time.Second, "with --follow: time between two readings")
	c.Flags().BoolVar(&o.AltersAddOnly, "diff-safe", false,
		"with --follow: the table's alterations have only added columns or ranges, so that lists of changes are right")
	return c
}

// clusterTime parses a time of a cluster: what was written up to it.
func clusterTime(flag, word string) (mvcc.Timestamp, error) {
	ts, err := when.ParseState(word, time.Now())
	switch {
	case err != nil:
		return 0, exit.Usage(fmt.Errorf("--%s: %w", flag, err))
	case ts == when.Latest:
		return 0, nil
	case ts.Time().After(time.Now()):
		return 0, exit.Usage(fmt.Errorf("--%s: time %s is ahead of the clock", flag, word))
	}
	return ts + 1, nil
}

// Compare is the verb "oribi kudu compare".
func Compare(a *console.Console) *cobra.Command {
	var f clusterFlags
	var table, at string
	c := verb.New(a, "compare DIR NAME", "List the rows in which a table and its copy in a running Kudu cluster differ",
		func(cmd *cobra.Command, args []string) error {
			var o live.CompareOptions
			there, err := clusterTime("at", at)
			if err != nil {
				return err
			}
			if there != 0 {
				o.Here, o.There = there-1, there
			}
			if table == "" {
				table = args[1]
			}
			return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
				return f.withCluster(cmd.Context(), func(c *client.Client) error {
					other, err := c.OpenTable(cmd.Context(), table)
					if err != nil {
						return err
					}
					return printDifferences(cmd.Context(), a, t, other, o)
				})
			})
		})
	f.add(c)
	c.Flags().StringVar(&table, "table", "", "the table's name in the cluster (default: NAME)")
	flags.Time(c, &at, "at", "latest", "compare both tables as of this time")
	return c
}

// printDifferences prints a line for each difference, and a summary on stderr. Differences are an error.
func printDifferences(
	ctx context.Context, a *console.Console, t *oribi.Table, there *client.Table, o live.CompareOptions,
) error {
	var n, missing, extra int
	var line []byte
	object := func(columns []schema.Column, cells [][]byte) {
		if cells == nil {
			line = append(line, "null"...)
			return
		}
		line = celltext.AppendObject(line, columns, cells)
	}
	for d, err := range live.Compare(ctx, t, there, o) {
		if err != nil {
			return err
		}
		n++
		if d.Here == nil {
			extra++
		}
		if d.There == nil {
			missing++
		}
		line = append(line[:0], `{"key":`...)
		object(d.KeyColumns, d.Key)
		line = append(line, `,"here":`...)
		object(d.Columns, d.Here)
		line = append(line, `,"there":`...)
		object(d.Columns, d.There)
		if err := a.Printf("%s}\n", line); err != nil {
			return err
		}
	}
	if n == 0 {
		fmt.Fprintln(a.Stderr, "oribi: no differences")
		return nil
	}
	return exit.With(exit.Failed, fmt.Errorf("%d rows differ: %d are missing in the cluster, %d are there only, %d have other cells",
		n, missing, extra, n-missing-extra))
}
