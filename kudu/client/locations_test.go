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
	"github.com/oribi-db/oribi/internal/kudurpc"
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

// The masters are asked once for all tablets, and again when the time of the answer is over or a key
// has no tablet.
func TestLocationsAreKept(t *testing.T) {
	f, table := tableOf(t, 1)
	f.locate("id1", f.place("t1", "", "m", 0))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if found, err := table.tabletOf(t.Context(), []byte("a")); err != nil || found.id != "t1" {
				t.Errorf("found %v, error %v", found, err)
			}
		})
	}
	wg.Wait()
	must.Equal(t, f.called("GetTableLocations"), 1)
	err := must.Err(table.tabletOf(t.Context(), []byte("x")))
	must.Fail(t, err, ErrNotCovered)
	must.Contain(t, err.Error(), `table "m"`)
	must.Equal(t, f.called("GetTableLocations"), 2)
	f.locate("id1", f.place("t1", "", "m", 0), f.place("t2", "m", "", 0))
	must.Equal(t, must.Get(table.tabletOf(t.Context(), []byte("x")))(t).id, "t2")
	must.Equal(t, f.called("GetTableLocations"), 3)
	table.locations.last.expires = time.Now()
	must.Do(t, must.Err(table.tablets(t.Context())))
	must.Equal(t, f.called("GetTableLocations"), 4)
}

// leader is the function of tablet servers of which one leads a tablet: the others refuse writes as
// Kudu's servers do.
func leader(f *fakeCluster, leads *int, calls *int) func(int, *rpctest.Request) rpctest.Reply {
	return func(i int, r *rpctest.Request) rpctest.Reply {
		f.mu.Lock()
		defer f.mu.Unlock()
		if *calls++; i != *leads {
			return rpctest.Reply{Message: &pb.WriteResponsePB{Error: tabletError(1, 9, "replica is not leader of this config")}}
		}
		return rpctest.Reply{Message: &pb.WriteResponsePB{Timestamp: proto.Uint64(5)}}
	}
}

func tabletError(code, status int32, text string) *pb.TabletServerErrorPB {
	return &pb.TabletServerErrorPB{Code: &code, Status: &kudupb.AppStatusPB{Code: &status, Message: &text}}
}

func writeCall() *kudurpc.Call {
	return &kudurpc.Call{Method: "Write", Request: &pb.WriteRequestPB{TabletId: []byte("t1")}, Response: &pb.WriteResponsePB{}}
}

// A call follows the leader of its tablet: when the masters know of a new one, when they do not yet,
// and when its server has ended.
func TestTheLeaderOfATabletIsFollowed(t *testing.T) {
	f, table := tableOf(t, 3)
	leads, calls := 0, 0
	f.serve = leader(f, &leads, &calls)
	f.locate("id1", f.place("t1", "", "", 0))
	must.Do(t, table.leading(t.Context(), "t1", writeCall()))
	must.Equal(t, calls, 1)

	f.set(func() { leads = 1 })
	late := 3 // lookups until the masters know
	f.set(func() {
		f.hook = func(_ int, method string) *pbReply {
			if method == "GetTableLocations" {
				if late--; late == 0 {
					f.tables["id1"].locations.TabletLocations[0] = f.place("t1", "", "", 1)
				}
			}
			return nil
		}
	})
	must.Do(t, table.leading(t.Context(), "t1", writeCall()))
	must.Equal(t, calls, 5)

	f.set(func() { leads, f.hook = 2, nil })
	f.servers[1].Stop()
	f.locate("id1", f.place("t1", "", "", 2))
	must.Do(t, table.leading(t.Context(), "t1", writeCall()))
	must.Equal(t, must.Get(table.tablets(t.Context()))(t).all[0].leader().server, "server 2")
}

// Calls that the caller has to change are not repeated; busy servers are waited for.
func TestCallsToLeadersThatFail(t *testing.T) {
	f, table := tableOf(t, 1)
	f.locate("id1", f.place("t1", "", "", 0))
	for _, test := range []struct {
		reply rpctest.Reply
		want  kudurpc.Class
		calls int
	}{
		{rpctest.Reply{Message: &pb.WriteResponsePB{Error: tabletError(5, 4, "schema")}}, kudurpc.OtherSchema, 1},
		{rpctest.Reply{Message: &pb.WriteResponsePB{Error: tabletError(1, 1, "Row not in tablet partition")}},
			kudurpc.Final, 1},
		{rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("m"), Code: proto.Int32(17)}}, kudurpc.AuthzToken, 1},
		{rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("m"), Code: proto.Int32(6)}}, kudurpc.Stale, 1},
		{rpctest.Reply{Error: &pb.ErrorStatusPB{Message: proto.String("m"), Code: proto.Int32(4)}}, kudurpc.Busy, 101},
		{rpctest.Reply{Message: &pb.WriteResponsePB{Error: tabletError(1, 13, "unavailable")}}, kudurpc.Unavailable, 101},
	} {
		calls := 0
		f.serve = func(int, *rpctest.Request) rpctest.Reply { calls++; return test.reply }
		table.c.o.sleep = (&Options{}).patientSleep()
		err := table.leading(t.Context(), "t1", writeCall())
		must.Refuse(t, err)
		must.Contain(t, err.Error(), "Write at "+f.servers[0].Address+", tablet t1: ")
		must.Equal(t, kudurpc.ClassOf(err), test.want)
		must.Equal(t, calls, test.calls)
	}
}

// patientSleep is the sleep of options that give up after 100 pauses.
func (o *Options) patientSleep() func(context.Context, time.Duration) error {
	(&fakeCluster{}).patient(o)
	return o.sleep
}

// A tablet that the table no longer has is an error of class NoTablet.
func TestTabletsThatAreGone(t *testing.T) {
	f, table := tableOf(t, 1)
	f.locate("id1", f.place("t1", "", "", 0))
	must.Do(t, must.Err(table.tablets(t.Context())))
	f.serve = func(int, *rpctest.Request) rpctest.Reply {
		return rpctest.Reply{Message: &pb.WriteResponsePB{Error: tabletError(6, 1, "Tablet not found")}}
	}
	f.locate("id1", f.place("t2", "", "", 0))
	err := table.leading(t.Context(), "t1", writeCall())
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.NoTablet)
	must.Contain(t, err.Error(), "the table no longer has the tablet")
	must.Equal(t, f.called("GetTableLocations"), 2)
	f.locate("id1", f.place("t2", "", "", -1))
	must.Do(t, must.Err(table.refresh(t.Context(), table.locations.last)))
	err = table.leading(t.Context(), "t2", writeCall())
	must.Contain(t, err.Error(), "no replica leads")
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
			if r := tb.leader(); r != nil && !r.leads {
				t.Fatalf("tablet %q: a replica that does not lead", tb.id)
			}
		}
	})
}
