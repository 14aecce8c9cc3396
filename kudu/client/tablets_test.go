package client

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// fakeTablets are the rows of a table at three servers, with all their versions. They check what
// clients send as real servers do.
type fakeTablets struct {
	t     testing.TB
	f     *fakeCluster
	table *Table
	s     *schema.Schema

	mu       sync.Mutex
	now      uint64 // the last timestamp
	tablets  map[string]*fakeTablet
	answers  map[string]*pb.WriteResponsePB // by client and sequence number
	sequence []*pb.RequestIdPB
	scanners map[string]*fakeScanner
	calls    map[string]int // methods
	// before, if not nil, may replace the execution of a call, after the answer to it.
	before, after func(server int, r *rpctest.Request) *rpctest.Reply
	largest       int // rows of a write
}

// fakeTablet has rows by their encoded keys.
type fakeTablet struct {
	place *pb.TabletLocationsPB
	rows  map[string][]fakeVersion
}

// fakeVersion is a row from a time on; nil cells are none.
type fakeVersion struct {
	at    uint64
	cells [][]byte
}

type fakeScanner struct {
	number  uint32
	request *pb.NewScanRequestPB
	rows    [][][]byte // of the projection
	keys    []string
	sum     bool
}

// rowColumns are the columns of the tables of these tests.
var rowColumns = []schema.Column{{Name: "k", Type: schema.Int32}, {Name: "n", Type: schema.String},
	{Name: "v", Type: schema.Int64, Nullable: true}, {Name: "x", Type: schema.Double, Nullable: true}}

// newFakeTablets makes a table of four tablets: two buckets of k, each with n before and from "m" on.
func newFakeTablets(t testing.TB) *fakeTablets {
	f := newFakeCluster(t, 1)
	d := &fakeTablets{t: t, f: f, tablets: map[string]*fakeTablet{}, answers: map[string]*pb.WriteResponsePB{},
		scanners: map[string]*fakeScanner{}, calls: map[string]int{}, now: 1000}
	f.serve = d.serve
	for range 3 {
		f.addServer(rpctest.Options{})
	}
	s := must.Get(schema.New(rowColumns, 2))(t)
	column := func(name string) []*kudupb.PartitionSchemaPB_ColumnIdentifierPB {
		return []*kudupb.PartitionSchemaPB_ColumnIdentifierPB{{
			Identifier: &kudupb.PartitionSchemaPB_ColumnIdentifierPB_Name{Name: name}}}
	}
	f.tables["id1"] = &fakeTable{create: &pb.CreateTableRequestPB{Name: proto.String("t"), Schema: kudurow.WireSchema(s),
		PartitionSchema: &kudupb.PartitionSchemaPB{
			HashSchema:  []*kudupb.PartitionSchemaPB_HashBucketSchemaPB{{Columns: column("k"), NumBuckets: proto.Int32(2)}},
			RangeSchema: &kudupb.PartitionSchemaPB_RangeSchemaPB{Columns: column("n")}}}}
	d.place("a", "\x00\x00\x00\x00", "\x00\x00\x00\x00m", 0)
	d.place("b", "\x00\x00\x00\x00m", "\x00\x00\x00\x01", 1)
	d.place("c", "\x00\x00\x00\x01", "\x00\x00\x00\x01m", 2)
	d.place("d", "\x00\x00\x00\x01m", "", 0)
	d.locate()
	c, _ := f.connect(Options{}, 0)
	d.open(c)
	return d
}

func (d *fakeTablets) open(c *Client) {
	d.table = must.Get(c.OpenTable(d.t.Context(), "t"))(d.t)
	d.s = d.table.Schema
}

// patient makes the client wait any number of times, but not long.
func (d *fakeTablets) patient() {
	d.table.c.o.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
}

// place makes a tablet for [start, end), whose leader is at a server.
func (d *fakeTablets) place(id, start, end string, leads int) {
	place := d.f.place(id, start, end, leads)
	place.Partition.HashBuckets = []int32{int32(start[3])}
	d.tablets[id] = &fakeTablet{place, map[string][]fakeVersion{}}
}

// locate tells the master where the tablets are.
func (d *fakeTablets) locate() {
	var places []*pb.TabletLocationsPB
	for _, t := range d.tablets {
		places = append(places, t.place)
	}
	d.f.locate("id1", places...)
}

// change changes the servers.
func (d *fakeTablets) change(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	d.locate()
}

// newest returns the rows at the end.
func (d *fakeTablets) newest() map[string][][]byte { return d.at(1 << 62) }

// at returns the rows with versions before a time, by their keys.
func (d *fakeTablets) at(time uint64) map[string][][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	rows := map[string][][]byte{}
	for _, t := range d.tablets {
		for key, versions := range t.rows {
			if v := before(versions, time); v != nil && v.cells != nil {
				rows[key] = v.cells
			}
		}
	}
	return rows
}

// before returns the last version before a time.
func before(versions []fakeVersion, time uint64) (last *fakeVersion) {
	for i := range versions {
		if versions[i].at < time {
			last = &versions[i]
		}
	}
	return last
}

func serverError(code pb.TabletServerErrorCode, status kudurpc.Status, text string) *pb.TabletServerErrorPB {
	return &pb.TabletServerErrorPB{Code: proto.Int32(int32(code)), Status: &kudupb.AppStatusPB{
		Code: proto.Int32(int32(status)), Message: &text}}
}

func rpcError(code pb.RpcErrorCode) *rpctest.Reply {
	return &rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("says the server"),
		Code: proto.Int32(int32(code))}}
}

func serviceError(code pb.TabletServerErrorCode, status kudurpc.Status) *rpctest.Reply {
	return &rpctest.Reply{Message: &pb.WriteResponsePB{Error: serverError(code, status, "says the server")}}
}

func (d *fakeTablets) serve(server int, r *rpctest.Request) rpctest.Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[r.Method()]++
	if d.before != nil {
		if reply := d.before(server, r); reply != nil {
			return *reply
		}
	}
	var reply rpctest.Reply
	switch r.Method() {
	case "Write":
		reply.Message = d.write(server, r)
	case "Scan":
		reply = d.scan(parse(d.f, r, &pb.ScanRequestPB{}))
	case "Checksum":
		reply.Message = d.checksum(parse(d.f, r, &pb.ChecksumRequestPB{}))
	case "ScannerKeepAlive":
		reply.Message = &pb.ScannerKeepAliveResponsePB{}
	}
	if d.after != nil {
		if instead := d.after(server, r); instead != nil {
			return *instead
		}
	}
	return reply
}

// write carries a write out, once.
func (d *fakeTablets) write(server int, r *rpctest.Request) proto.Message {
	m := parse(d.f, r, &pb.WriteRequestPB{})
	fail := func(code pb.TabletServerErrorCode, status kudurpc.Status, text string) proto.Message {
		return &pb.WriteResponsePB{Error: serverError(code, status, text)}
	}
	t := d.tablets[string(m.TabletId)]
	if t == nil {
		return fail(pb.TabletServerErrorCode_TABLET_NOT_FOUND, kudurpc.NotFound, "no tablet")
	}
	if t.place.InternedReplicas[server].GetRole() != int32(pb.Role_LEADER) {
		return fail(pb.TabletServerErrorCode_TABLET_SERVER_UNKNOWN_ERROR, kudurpc.IllegalState, "not the leader")
	}
	d.now = max(d.now, m.GetPropagatedTimestamp()) + 1
	id := r.Header.GetRequestId()
	d.sequence = append(d.sequence, id)
	name := fmt.Sprint(id.GetClientId(), id.GetSeqNo())
	if known := d.answers[name]; known != nil {
		return known
	}
	answer := &pb.WriteResponsePB{Timestamp: &d.now}
	answer.Timestamp = proto.Uint64(d.now)
	wal := must.Get(kuduwal.NewDecoder(d.s))(d.t)
	request := &kudupb.WriteRequestPB{Schema: m.Schema, RowOperations: m.RowOperations}
	encoder := kudurow.NewEncoder(d.s)
	n := int32(0)
	rows := &kudurow.Rows{Operations: m.RowOperations.Rows, Indirect: m.RowOperations.IndirectData}
	var cells [][][]byte
	must.Do(d.t, encoder.Each(rows, func(row *kudurow.Row) error {
		cells = append(cells, cloneCells(row.Cells))
		return nil
	}))
	must.Do(d.t, wal.Each(request, func(row *kuduwal.Row) error {
		key := d.table.partitioner.AppendKey(nil, cells[n])
		if p := t.place.Partition; bytes.Compare(key, p.PartitionKeyStart) < 0 ||
			len(p.PartitionKeyEnd) > 0 && bytes.Compare(key, p.PartitionKeyEnd) >= 0 {
			d.t.Errorf("row %d with the partition key %x is not in tablet %s", n, key, m.TabletId)
		}
		if status := t.apply(row, cells[n], d.now); status != 0 {
			answer.PerRowErrors = append(answer.PerRowErrors, &pb.WriteResponsePB_PerRowErrorPB{RowIndex: proto.Int32(n),
				Error: &kudupb.AppStatusPB{Code: proto.Int32(int32(status)), Message: proto.String("says the server")}})
		}
		n++
		return nil
	}))
	d.largest = max(d.largest, int(n))
	d.answers[name] = answer
	return answer
}

func cloneCells(cells [][]byte) [][]byte {
	out := make([][]byte, len(cells))
	for i, c := range cells {
		if c != nil {
			out[i] = append([]byte{}, c...)
		}
	}
	return out
}

// apply carries out an operation on a row.
func (t *fakeTablet) apply(row *kuduwal.Row, cells [][]byte, now uint64) kudurpc.Status {
	key := string(row.Key)
	versions := t.rows[key]
	live := len(versions) > 0 && versions[len(versions)-1].cells != nil
	switch {
	case row.Kind == kuduwal.Insert && live:
		if row.Ignore {
			return 0
		}
		return kudurpc.AlreadyPresent
	case (row.Kind == kuduwal.Update || row.Kind == kuduwal.Delete) && !live:
		if row.Ignore {
			return 0
		}
		return kudurpc.NotFound
	case row.Kind == kuduwal.Delete:
		cells = nil
	}
	t.rows[key] = append(versions, fakeVersion{now, cells})
	return 0
}

// randomRow returns a row of the test's table.
func randomRow(r *rand.Rand) [][]byte {
	row := [][]byte{int32Cell(r.IntN(1000)), {byte('a' + r.IntN(26)), byte(r.IntN(3))}, int64Cell(r.IntN(100)),
		make([]byte, 8)}
	if r.IntN(3) == 0 {
		row[2] = nil
	}
	return row
}

func (d *fakeTablets) key(row [][]byte) string {
	return string(keyenc.NewEncoder(d.s).AppendKey(nil, row))
}

func batchOf(columns []schema.Column, rows ...[][]byte) *batch.RecordBatch {
	b := batch.New(columns, len(rows))
	for row, cells := range rows {
		for i, cell := range cells {
			b.Columns[i].SetCell(row, cell)
		}
	}
	return b
}

// setRows makes rows at the servers, at one time each.
func (d *fakeTablets) setRows(rows map[string][][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		d.now++
		at := d.table.partitioner.AppendKey(nil, rows[key])
		for _, t := range d.tablets {
			if (&tablet{start: t.place.Partition.PartitionKeyStart, end: t.place.Partition.PartitionKeyEnd}).has(at) {
				t.rows[key] = append(t.rows[key], fakeVersion{d.now, rows[key]})
			}
		}
	}
}
