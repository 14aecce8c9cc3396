package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// KuduScan is a scan of the only table of a Kudu tablet server: by Oribi from the server's
// directory, and by the server, which sends the rows to a client.
type KuduScan struct {
	Workload string
	Columns  []string // nil: all
	Large    bool     // the table of Kudu's load generator; otherwise lineitem with changes

	about string
}

// KuduScans are the scans.
var KuduScans = []KuduScan{
	{Workload: "kudu-scan-lineitem", about: "all 16 columns"},
	{Workload: "kudu-scan-lineitem-column", Columns: []string{"l_partkey"}, about: "l_partkey (INT64)"},
	{Workload: "kudu-scan-large", Large: true, about: "all 3 columns"},
	{Workload: "kudu-scan-large-column", Large: true, Columns: []string{loadColumns[1]}, about: "int_val (INT32)"},
}

// KuduPeer is the name of the peer, a tablet server, and of its module.
const KuduPeer = "kudu"

// KuduScanner is a peer that scans with a server.
type KuduScanner struct{ Name, Format string } // the format in which the server sends rows

// KuduScanners are the peers that scan with a server.
var KuduScanners = []KuduScanner{{KuduPeer, KuduByRow}, {KuduPeer + "-columnar", KuduColumns}}

// Formats in which a server sends rows.
const (
	KuduByRow   = "ROWWISE"
	KuduColumns = "COLUMNAR"
)

// kuduStore is the state that all peers of a KuduScan read.
const kuduStore = "server"

// loadColumns are the columns of the table of Kudu's load generator.
var loadColumns = []string{"key", "int_val", "string_val"}

// loadRows is the largest number of rows of the large table.
const loadRows = 10_000_000

// Rows returns the number of rows of the large table.
func (c *KuduScan) Rows(env *harness.Env) int { return min(10*env.Scale.Table, loadRows) }

// group is the prepared state of the scans of one table.
func (c *KuduScan) group() string {
	if c.Large {
		return "kudu-large"
	}
	return "kudu-lineitem"
}

// KuduServerDir returns the only root of the tablet server in a peer's directory.
func KuduServerDir(env *harness.Env) string { return env.Path("tserver") }

// KuduEnough is the minimum duration of a measurement: long enough for processor time in clock
// ticks.
func KuduEnough(env *harness.Env) time.Duration { return 6 * enough(env) }

// kuduScan lists the server first: it prepares the state for the others. Memory has no limit: our
// cache is as large as the server's, and garbage comes on top.
func kuduScan(c KuduScan, more []harness.Peer) harness.Workload {
	table := "lineitem in a Kudu directory, 100,000 rows in 5 overlapping rowsets, a tenth updated, a hundredth " +
		"deleted, in delta files and the log"
	if c.Large {
		table = fmt.Sprintf("the table of kudu perf loadgen in a Kudu directory, %d rows", loadRows)
	}
	return harness.Workload{
		Name: c.Workload, About: "scan " + table + ": " + c.about +
			", no order, caches warm; rows per second of processor time, of the tablet server alone",
		Unit: "rows/CPU s", More: true, Group: c.group(),
		Peers: append(more, harness.Peer{Name: "oribi", Ours: true, Store: kuduStore,
			Prepare: c.Prepare, Measure: c.Measure}),
		Floors: []harness.Floor{{Peer: "oribi", Against: harness.BestPeer, Ratio: 3, Least: true}},
	}
}

// KuduTable opens the directory of the server and returns the name of its only table.
func KuduTable(env *harness.Env) (d *kudu.Directory, table string, err error) {
	if d, err = kudu.Open(KuduServerDir(env), kudu.Options{CacheBytes: peer.CacheBytes}); err != nil {
		return nil, "", err
	}
	if len(d.Tablets()) == 0 {
		return nil, "", errors.New("the server has no tablet")
	}
	return d, d.Tablets()[0].Table, nil
}

// Measure times scans of the open table. Two scans come before: the first computes the checksum,
// the second warms up.
func (c KuduScan) Measure(env *harness.Env) (m harness.Measurement, err error) {
	begin := time.Now()
	d, name, err := KuduTable(env)
	if err != nil {
		return m, err
	}
	t, err := d.Open(context.Background(), name)
	if err != nil {
		return m, closeAll(err, d)
	}
	defer func() { err = closeAll(closeAll(err, t), d) }()
	opened := time.Since(begin)
	if checked(env) {
		if m.Checksum, err = c.check(t); err != nil {
			return m, err
		}
	}
	rows, sum, err := c.scan(t)
	if err != nil {
		return m, err
	}
	passes := 0
	took, err := env.Clock(func() error {
		for begin := time.Now(); passes < 2 || time.Since(begin) < KuduEnough(env); passes++ {
			n, s, err := c.scan(t)
			if err != nil {
				return err
			}
			if n != rows || s != sum {
				return fmt.Errorf("%d rows sum %d, before %d rows sum %d", n, s, rows, sum)
			}
		}
		return nil
	})
	KuduResult(env, &m, rows*int64(passes), took)
	m.Metrics["open ms"] = float64(opened.Microseconds()) / 1000
	return m, err
}

// KuduResult sets the figures of scans that Clock has measured.
func KuduResult(env *harness.Env, m *harness.Measurement, rows int64, took time.Duration) {
	const tick = 0.01 // seconds; the processor time of other processes is in ticks
	m.Value = float64(rows) / max(env.CPU(), tick)
	m.Metrics = map[string]float64{"rows/s": float64(rows) / took.Seconds()}
}

// KuduSum returns the checksum of a scan: the number of rows, and the sum of the CRC32C of each.
func KuduSum(rows int64, sum uint64) string { return fmt.Sprintf("%d rows sum %016x", rows, sum) }

// begin begins a scan.
func (c *KuduScan) begin(t *kudu.Table) (scan.Iterator, error) {
	o := scan.Options{Snapshot: mvcc.Everything}
	for i := range t.Schema.Columns {
		if c.Columns == nil {
			o.Columns = append(o.Columns, i)
		}
	}
	for _, name := range c.Columns {
		o.Columns = append(o.Columns, t.Schema.Index(name))
	}
	return t.Scan(o, false)
}

// check returns the checksum of all values.
func (c *KuduScan) check(t *kudu.Table) (string, error) {
	it, err := c.begin(t)
	if err != nil {
		return "", err
	}
	defer it.Close()
	var sum RowSum
	for it.Next() {
		if err := sum.Add(it.Batch()); err != nil {
			return "", err
		}
	}
	return sum.String(), it.Close()
}

// scan reads all rows and adds up their values.
func (c *KuduScan) scan(t *kudu.Table) (rows, sum int64, err error) {
	it, err := c.begin(t)
	if err != nil {
		return 0, 0, err
	}
	for it.Next() {
		b := it.Batch()
		b.Compact()
		rows += int64(b.Len)
		sum += UseValues(b)
	}
	return rows, sum, it.Close()
}

// Prepare makes the directory without a server: lineitem from the corpus, if the machine has it,
// other tables by an export.
func (c KuduScan) Prepare(env *harness.Env) error {
	if !c.Large {
		if err := UnpackKuduLineitem(env); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.export(env)
}
