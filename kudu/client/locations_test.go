package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// A tablet is found by a partition key if and only if one has it: random tablets with gaps, compared
// with a search of all.
func TestTabletsAreFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		m := &pb.GetTableLocationsResponsePB{}
		var keys []string
		for range r.IntN(12) {
			keys = append(keys, string([]byte{byte(r.IntN(20)), byte(r.IntN(3))})[:r.IntN(3)])
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		for i := 0; i+1 < len(keys); i++ {
			if r.IntN(3) > 0 {
				m.TabletLocations = append(m.TabletLocations, (&fakeCluster{}).place(fmt.Sprint(i), keys[i], keys[i+1], -1))
			}
		}
		if len(keys) > 0 && r.IntN(2) == 0 {
			m.TabletLocations = append(m.TabletLocations, (&fakeCluster{}).place("last", keys[len(keys)-1], "", -1))
		}
		r.Shuffle(len(m.TabletLocations), func(i, j int) {
			m.TabletLocations[i], m.TabletLocations[j] = m.TabletLocations[j], m.TabletLocations[i]
		})
		s := must.Get(newTablets(m))(t)
		for i := range 21 {
			for _, key := range []string{string([]byte{byte(i)}), string([]byte{byte(i), byte(r.IntN(3))}), ""} {
				want := ""
				for _, l := range m.TabletLocations {
					from, to := string(l.Partition.PartitionKeyStart), string(l.Partition.PartitionKeyEnd)
					if from <= key && (to == "" || key < to) {
						want = string(l.TabletId)
					}
				}
				got := ""
				if found := s.find([]byte(key)); found != nil {
					got = found.id
				}
				must.Equal(t, got, want, keys, key)
			}
		}
	}
}

func TestLocationsThatDoNotFit(t *testing.T) {
	f := &fakeCluster{}
	far := f.place("c", "a", "b", -1)
	far.InternedReplicas = []*pb.TabletLocationsPB_InternedReplicaPB{{TsInfoIdx: proto.Uint32(1), Role: proto.Int32(1)}}
	for _, test := range []struct {
		text string
		m    *pb.GetTableLocationsResponsePB
	}{
		{"tablets a and b overlap", &pb.GetTableLocationsResponsePB{TabletLocations: []*pb.TabletLocationsPB{
			f.place("b", "a", "", -1), f.place("a", "", "b", -1)}}},
		{"tablets a and b overlap", &pb.GetTableLocationsResponsePB{TabletLocations: []*pb.TabletLocationsPB{
			f.place("a", "", "", -1), f.place("b", "", "", -1)}}},
		{"tablet a has no partition keys", &pb.GetTableLocationsResponsePB{TabletLocations: []*pb.TabletLocationsPB{
			f.place("a", "b", "b", -1)}}},
		{"a replica of tablet c is at server 1 of 1", &pb.GetTableLocationsResponsePB{
			TabletLocations: []*pb.TabletLocationsPB{far}, TsInfos: []*pb.TSInfoPB{{}}}},
	} {
		err := must.Err(newTablets(test.m))
		must.Fail(t, err, ErrCorrupt, test.text)
		must.Contain(t, err.Error(), test.text)
	}
}

// tableOf returns a table of a cluster with tablet servers.
func tableOf(t testing.TB, servers int) (*fakeCluster, *Table) {
	f := newFakeCluster(t, 1)
	for range servers {
		f.addServer(rpctest.Options{})
	}
	c, _ := f.connect(Options{}, 0)
	return f, must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t)}))(t)
}

// The masters are asked once for all tablets, by all at the same time, and again when the time of the
// answer is over, or when a caller says that an answer is wrong which is still the last one.
func TestLocationsAreKept(t *testing.T) {
	f, table := tableOf(t, 1)
	f.locate("id1", f.place("t1", "", "m", 0))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if s, err := table.tablets(t.Context()); err != nil || s.find([]byte("a")).id != "t1" {
				t.Errorf("tablets %v, error %v", s, err)
			}
		})
	}
	wg.Wait()
	must.Equal(t, f.called("GetTableLocations"), 1)
	old := must.Get(table.tablets(t.Context()))(t)
	must.Equal(t, old.find([]byte("x")) == nil, true)
	f.locate("id1", f.place("t1", "", "m", 0), f.place("t2", "m", "", 0))
	for range 2 {
		must.Equal(t, must.Get(table.refresh(t.Context(), old))(t).find([]byte("x")).id, "t2")
	}
	must.Equal(t, f.called("GetTableLocations"), 2)
	table.locations.last.expires = time.Now()
	must.Do(t, must.Err(table.tablets(t.Context())))
	must.Equal(t, f.called("GetTableLocations"), 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := must.Err(table.refresh(ctx, table.locations.last))
	must.Fail(t, err, context.Canceled)
	must.Contain(t, err.Error(), `table "m"`)
}

// Replicas have the addresses of their servers, and one of them leads.
func TestReplicas(t *testing.T) {
	f, table := tableOf(t, 2)
	f.locate("id1", f.place("t1", "", "", 1))
	s := must.Get(table.tablets(t.Context()))(t)
	must.Equal(t, s.byID("t1").replicas, []replica{{"server 0", []string{f.servers[0].Address}, false},
		{"server 1", []string{f.servers[1].Address}, true}})
	must.Equal(t, s.byID("t2") == nil, true)
}

// Any answer of a master about a table is one, or an error.
func FuzzDescriptions(f *testing.F) {
	spec := &TableSpec{Name: "m", Schema: testSchema(f), Partitioning: Partitioning{
		Hash: []Hash{{Columns: []string{"host"}, Buckets: 2}}, Range: []string{"day"},
		Ranges: []Range{{To: []any{5}}, {From: []any{5}, Hash: []Hash{{Columns: []string{"day"}, Buckets: 3}}}}}}
	request, _, err := spec.message()
	must.Do(f, err)
	for i, c := range request.Schema.Columns {
		c.Id = proto.Uint32(uint32(i))
	}
	encode := func(m proto.Message) []byte { return must.Get(proto.Marshal(m))(f) }
	f.Add(encode(&pb.GetTableSchemaResponsePB{Schema: request.Schema, PartitionSchema: request.PartitionSchema}),
		encode(&pb.GetTableLocationsResponsePB{TabletLocations: []*pb.TabletLocationsPB{
			(&fakeCluster{servers: make([]*rpctest.Server, 1)}).place("t1", "", "b", 0)}, TsInfos: []*pb.TSInfoPB{
			{PermanentUuid: []byte("s"), RpcAddresses: []*kudupb.HostPortPB{hostPort("h:1")}}}}))
	fuzztest.Run(f, func(t *testing.T, description, locations []byte) {
		var d pb.GetTableSchemaResponsePB
		if proto.Unmarshal(description, &d) == nil {
			if table, err := newTable(&d); err == nil {
				kudurow.WireSchema(table.Schema)
			}
		}
		var l pb.GetTableLocationsResponsePB
		if proto.Unmarshal(locations, &l) != nil {
			return
		}
		s, err := newTablets(&l)
		if err != nil {
			return
		}
		for _, tb := range s.all {
			if found := s.find(tb.start); found != tb {
				t.Fatalf("tablet %q is not found by its start", tb.id)
			}
		}
	})
}
