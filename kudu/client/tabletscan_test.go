package client

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/schema"
)

// rowsOf returns the rows of a scan of a tablet, in key order, of at most a limit.
func (d *fakeTablets) rowsOf(t *fakeTablet, m *pb.NewScanRequestPB) (rows [][][]byte, keys []string) {
	at := uint64(1 << 62)
	if m.SnapTimestamp != nil {
		at = m.GetSnapTimestamp()
	}
	for _, key := range slices.Sorted(maps.Keys(t.rows)) {
		v := before(t.rows[key], at)
		if v == nil || m.StartPrimaryKey != nil && key < string(m.StartPrimaryKey) ||
			m.StopPrimaryKey != nil && key >= string(m.StopPrimaryKey) ||
			m.LastPrimaryKey != nil && key <= string(m.LastPrimaryKey) {
			continue
		}
		cells, deleted := v.cells, v.cells == nil
		if m.SnapStartTimestamp != nil {
			old := before(t.rows[key], m.GetSnapStartTimestamp())
			if v.at < m.GetSnapStartTimestamp() || deleted && (old == nil || old.cells == nil) {
				continue
			}
			if deleted {
				cells = before(t.rows[key], v.at).cells
			}
		} else if deleted {
			continue
		}
		if !d.passes(m.ColumnPredicates, cells) {
			continue
		}
		var out [][]byte
		for _, c := range m.ProjectedColumns {
			if c.GetType() == int32(kudupb.DataType_IS_DELETED) {
				out = append(out, []byte{map[bool]byte{true: 1}[deleted]})
				continue
			}
			if c.Id != nil || c.GetIsKey() {
				d.t.Errorf("projection of column %v", c)
			}
			out = append(out, cells[d.s.Index(c.GetName())])
		}
		if m.Limit != nil && len(rows) == int(m.GetLimit()) {
			break
		}
		rows, keys = append(rows, out), append(keys, key)
	}
	return rows, keys
}

// passes reports whether a row passes predicates.
func (d *fakeTablets) passes(predicates []*pb.ColumnPredicatePB, cells [][]byte) bool {
	for _, p := range predicates {
		i := d.s.Index(p.GetColumn())
		cell, t := cells[i], d.s.Columns[i].Type
		switch {
		case p.GetIsNull() != nil:
			if cell != nil {
				return false
			}
		case cell == nil:
			return false
		case p.GetRange() != nil:
			if lower := p.GetRange().Lower; lower != nil && batch.Compare(t, cell, lower) < 0 {
				return false
			}
			if upper := p.GetRange().Upper; upper != nil && batch.Compare(t, cell, upper) >= 0 {
				return false
			}
		case p.GetEquality() != nil:
			if batch.Compare(t, cell, p.GetEquality().Value) != 0 {
				return false
			}
		}
	}
	return true
}

// rowsPerAnswer is how many rows an answer has.
const rowsPerAnswer = 7

func (d *fakeTablets) scan(m *pb.ScanRequestPB) rpctest.Reply {
	fail := func(code pb.TabletServerErrorCode) rpctest.Reply {
		return rpctest.Reply{Message: &pb.ScanResponsePB{Error: serverError(code, kudurpc.NotFound, "says the server")}}
	}
	answer := &pb.ScanResponsePB{PropagatedTimestamp: proto.Uint64(d.now)}
	s := d.scanners[string(m.ScannerId)]
	switch request := m.NewScanRequest; {
	case request != nil:
		t := d.tablets[string(request.TabletId)]
		if t == nil {
			return fail(pb.TabletServerErrorCode_TABLET_NOT_FOUND)
		}
		ordered := request.GetOrderMode() == int32(pb.OrderMode_ORDERED)
		if request.LastPrimaryKey != nil && (request.StartPrimaryKey != nil || !ordered) {
			return fail(pb.TabletServerErrorCode_INVALID_SCAN_SPEC)
		}
		d.now = max(d.now, request.GetPropagatedTimestamp()) + 1
		s = &fakeScanner{request: request}
		if request.SnapTimestamp == nil {
			answer.SnapTimestamp = proto.Uint64(d.now)
		}
		s.rows, s.keys = d.rowsOf(t, request)
		if request.GetOrderMode() != int32(pb.OrderMode_ORDERED) {
			slices.Reverse(s.rows)
		}
		m.ScannerId = fmt.Append(nil, "scanner ", len(d.scanners)+1000*d.calls["Scan"])
	case s == nil:
		return fail(pb.TabletServerErrorCode_SCANNER_EXPIRED)
	case m.GetCloseScanner():
		delete(d.scanners, string(m.ScannerId))
		return rpctest.Reply{Message: answer}
	case m.GetCallSeqId() != s.number:
		delete(d.scanners, string(m.ScannerId))
		return fail(pb.TabletServerErrorCode_INVALID_SCAN_CALL_SEQ_ID)
	}
	s.number++
	n := min(len(s.rows), rowsPerAnswer)
	if m.GetBatchSizeBytes() == 0 {
		n = 0
	}
	var sidecars [][]byte
	answer.ColumnarData, sidecars = d.columnar(s.request.ProjectedColumns, s.rows[:n])
	if n > 0 {
		answer.LastPrimaryKey = []byte(s.keys[n-1])
	}
	s.rows, s.keys = s.rows[n:], s.keys[n:]
	if answer.HasMoreResults = proto.Bool(len(s.rows) > 0); len(s.rows) > 0 {
		answer.ScannerId = m.ScannerId
		d.scanners[string(m.ScannerId)] = s
	} else {
		delete(d.scanners, string(m.ScannerId))
	}
	return rpctest.Reply{Message: answer, Sidecars: sidecars}
}

// columnar returns rows as servers send them.
func (d *fakeTablets) columnar(columns []*kudupb.ColumnSchemaPB, rows [][][]byte) (
	m *pb.ColumnarRowBlockPB, sidecars [][]byte,
) {
	m = &pb.ColumnarRowBlockPB{NumRows: proto.Int64(int64(len(rows)))}
	add := func(b []byte) *int32 {
		sidecars = append(sidecars, b)
		return proto.Int32(int32(len(sidecars) - 1))
	}
	for i, c := range columns {
		t := schema.Type(c.GetType())
		if kudupb.DataType(t) == kudupb.DataType_IS_DELETED {
			t = schema.Bool
		}
		var data, strings []byte
		present := make([]byte, (len(rows)+7)/8)
		if t.Variable() && len(rows) > 0 {
			data = make([]byte, 4)
		}
		for row := range rows {
			cell := rows[row][i]
			if cell != nil {
				present[row/8] |= 1 << (row % 8)
			}
			if t.Variable() {
				strings = append(strings, cell...)
				data = binary.LittleEndian.AppendUint32(data, uint32(len(strings)))
			} else {
				data = append(data, append(slices.Clone(cell), make([]byte, t.Width()-len(cell))...)...)
			}
		}
		column := &pb.ColumnarRowBlockPB_Column{DataSidecar: add(data)}
		if t.Variable() {
			column.VarlenDataSidecar = add(strings)
		}
		if c.GetIsNullable() {
			column.NonNullBitmapSidecar = add(present)
		}
		m.Columns = append(m.Columns, column)
	}
	return m, sidecars
}

// checksum sums a few rows in each call.
func (d *fakeTablets) checksum(m *pb.ChecksumRequestPB) proto.Message {
	answer := &pb.ChecksumResponsePB{}
	id := string(m.GetContinueRequest().GetScannerId())
	s := d.scanners[id]
	switch {
	case m.NewRequest != nil:
		s = &fakeScanner{request: m.NewRequest, sum: true}
		s.rows, _ = d.rowsOf(d.tablets[string(m.NewRequest.TabletId)], m.NewRequest)
		id = fmt.Sprint("sum ", d.calls["Checksum"])
		d.scanners[id] = s
	case s == nil || s.number != m.GetCallSeqId():
		answer.Error = serverError(pb.TabletServerErrorCode_SCANNER_EXPIRED, kudurpc.NotFound, "expired")
		return answer
	}
	s.number++
	n := min(len(s.rows), rowsPerAnswer)
	var columns []schema.Column
	for _, c := range s.request.ProjectedColumns {
		columns = append(columns, d.s.Columns[d.s.Index(c.GetName())])
	}
	b := batch.New(columns, n)
	for row, cells := range s.rows[:n] {
		for i, cell := range cells {
			b.Columns[i].SetCell(row, cell)
		}
	}
	sum := kudurow.Summer{Sum: m.GetContinueRequest().GetPreviousChecksum()}
	sum.Add(b)
	s.rows = s.rows[n:]
	answer.Checksum, answer.RowsChecksummed = &sum.Sum, proto.Int64(int64(n))
	if answer.HasMoreResults = proto.Bool(len(s.rows) > 0); len(s.rows) > 0 {
		answer.ScannerId = []byte(id)
	}
	return answer
}
