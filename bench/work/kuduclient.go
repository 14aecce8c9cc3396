package work

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/schema"
)

// Workloads of clients of Kudu's servers, and the peers of them.
const (
	KuduWrite    = "kudu-write"
	KuduSyncLag  = "kudu-sync-lag"
	OribiClient  = "oribi-client"      // package kudu/client, with batches of columns
	OribiByRow   = "oribi-client-rows" // the same, row by row
	JavaClient   = "java-client"       // Kudu's own, of the servers' version
	clientsGroup = "kudu-clients"
)

// Metrics of clients.
const (
	ByClock  = "rows/s"
	GrownMiB = "MiB of the client" // by which its memory grows beyond that before the work
)

// KuduRead is a scan of all rows by a client.
type KuduRead struct {
	Workload string
	Columns  []string // nil: all
	about    string
	floor    float64
}

// KuduReads are the scans.
var KuduReads = []KuduRead{
	{Workload: "kudu-read-all", about: "all 16 columns", floor: 3},
	{Workload: "kudu-read-column", Columns: []string{"l_partkey"}, about: "l_partkey (INT64)", floor: 5},
}

// KuduBuckets is the number of tablets of the clients' table, by a hash of the order key.
const KuduBuckets = 4

// KuduRows returns the number of rows of the clients' table, and that of different ones, which are
// prepared in advance and are repeated with ascending order keys.
func KuduRows(env *harness.Env) (all, prepared int) {
	prepared = min(10_000, env.Scale.Table/2)
	return env.Scale.Table / prepared * prepared, prepared
}

// KuduItems returns the rows that are prepared, and the file that begins with them.
func KuduItems(env *harness.Env) (items []inputs.Item, file string, err error) {
	_, n := KuduRows(env)
	for it, err := range some(env.Input(rowsFile), n) {
		if err != nil {
			return nil, "", err
		}
		items = append(items, *it)
	}
	return items, env.Input(rowsFile), nil
}

// PlainLineitem is LineitemSchema for programs without decimals and dates: integers of hundredths, and
// of days.
func PlainLineitem() (*schema.Schema, error) {
	s, err := inputs.LineitemSchema()
	if err != nil {
		return nil, err
	}
	for i := range s.Columns {
		switch c := &s.Columns[i]; c.Type {
		case schema.Decimal64:
			*c = schema.Column{ID: c.ID, Name: c.Name, Type: schema.Int64}
		case schema.Date:
			*c = schema.Column{ID: c.ID, Name: c.Name, Type: schema.Int32}
		}
	}
	return schema.New(s.Columns, s.Keys)
}

func kuduWrite(peers []harness.Peer) harness.Workload {
	floors := clientFloors(1.5, 64)
	floors = append(floors, harness.Floor{Peer: OribiClient, Metric: ByClock, Against: JavaClient, Ratio: 1, Least: true})
	return harness.Workload{
		Name: KuduWrite, About: fmt.Sprintf("write lineitem to an empty table of a Kudu server, %d tablets, until all rows "+
			"are acknowledged; rows prepared in advance; rows per second of processor time, of the client alone", KuduBuckets),
		Unit: "rows/CPU s", More: true, Fresh: true, Inputs: tableInputs, Peers: peers, Floors: floors,
	}
}

func kuduRead(c KuduRead, peers []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: c.Workload, About: fmt.Sprintf("read lineitem from a Kudu server, %d tablets: %s, every value is used, no "+
			"order, caches warm; rows per second of processor time, of the client alone", KuduBuckets, c.about),
		Unit: "rows/CPU s", More: true, Group: clientsGroup, Inputs: tableInputs, Peers: peers,
		Floors: clientFloors(c.floor, 32),
	}
}

// KuduSyncRate is the number of rows per second that the writer of KuduSyncLag commits, 1,000 at a time.
const KuduSyncRate = 20_000

// CommitSlower is a metric of KuduSyncLag.
const CommitSlower = "% slower commits"

func kuduSyncLag(peers []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: KuduSyncLag, About: fmt.Sprintf("live.Sync next to a writer of %d new rows of lineitem a second: the longest "+
			"time from a commit until all of its rows are acknowledged by a Kudu server, %d tablets, and the position of the "+
			"copy is durable; commits without sync, compared by their median with those without live.Sync", KuduSyncRate,
			KuduBuckets),
		Unit: "s", Fresh: true, Inputs: tableInputs, Peers: peers,
		Floors: []harness.Floor{{Peer: "oribi", Figure: 2}, {Peer: "oribi", Metric: CommitSlower, Figure: 10}},
	}
}

func clientFloors(ratio, mib float64) []harness.Floor {
	return []harness.Floor{{Peer: OribiClient, Against: JavaClient, Ratio: ratio, Least: true},
		{Peer: OribiClient, Metric: GrownMiB, Figure: mib}}
}

// kuduClientPeers returns the peers of these workloads, without their implementations.
func kuduClientPeers() (more []More) {
	add := func(workload, name, store string, ours bool) {
		more = append(more, More{workload, harness.Peer{Name: name, Ours: ours, Module: KuduPeer, Store: store}})
	}
	add(KuduWrite, OribiClient, "", true)
	add(KuduWrite, OribiByRow, "", true)
	add(KuduWrite, JavaClient, "", false)
	for _, c := range KuduReads {
		add(c.Workload, OribiClient, kuduStore, true)
		add(c.Workload, JavaClient, kuduStore, false)
	}
	add(KuduSyncLag, "oribi", "", true)
	return more
}

// KuduClientResult sets the figures of a client's work on rows that Clock has measured.
func KuduClientResult(env *harness.Env, m *harness.Measurement, rows int64, seconds float64) {
	const tick = 0.01 // seconds; the processor time of other processes is in ticks
	m.Value = float64(rows) / max(env.CPU(), tick)
	m.Metrics = map[string]float64{ByClock: float64(rows) / seconds, GrownMiB: float64(env.Grown()) / (1 << 20)}
}

// RowSum is a checksum of rows in any order: of a number 8 bytes, big-endian; of a string its length,
// likewise, and its bytes.
type RowSum struct {
	rows int64
	sum  uint64
	buf  []byte
}

// Add adds the rows of a batch.
func (s *RowSum) Add(b *batch.RecordBatch) error {
	for i := range b.Rows() {
		s.buf = s.buf[:0]
		for _, v := range b.Columns {
			cell := v.Cell(i)
			switch {
			case v.Type.Variable():
				s.buf = append(binary.BigEndian.AppendUint64(s.buf, uint64(len(cell))), cell...)
			case len(cell) == 8:
				s.buf = binary.BigEndian.AppendUint64(s.buf, binary.LittleEndian.Uint64(cell))
			case len(cell) == 4:
				s.buf = binary.BigEndian.AppendUint64(s.buf, uint64(int32(binary.LittleEndian.Uint32(cell))))
			default:
				return fmt.Errorf("a cell %x", cell)
			}
		}
		s.sum += uint64(crc32.Checksum(s.buf, castagnoli))
		s.rows++
	}
	return nil
}

// String returns the number of rows, and the sum of the CRC-32C of each.
func (s *RowSum) String() string { return KuduSum(s.rows, s.sum) }

// UseValues adds up the values of a batch, all of whose rows are selected: of a string its length and its
// last byte.
func UseValues(b *batch.RecordBatch) (sum int64) {
	for _, v := range b.Columns {
		sum += sumVector(v)
	}
	return sum
}
