package client

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
)

// fakeCluster has masters, of which one leads, and tablet servers. They do little more than to
// remember what they are asked.
type fakeCluster struct {
	t       testing.TB
	masters []*rpctest.Server
	servers []*rpctest.Server

	mu     sync.Mutex
	leader int                                      // index of a master, -1 for none
	id     string                                   // of the cluster
	ca     []byte                                   // of the CA that the leader names
	token  *pb.SignedTokenPB                        // that the leader gives
	calls  []string                                 // methods, each with the number of the server
	hook   func(server int, method string) *pbReply // of masters, if not nil
	serve  func(server int, r *rpctest.Request) rpctest.Reply
	tables map[string]*fakeTable // by ID
}

// pbReply replaces the reply of a fake server.
type pbReply struct {
	rpctest.Reply
	after bool // the call is carried out all the same
}

type fakeTable struct {
	create    *pb.CreateTableRequestPB
	version   uint32
	pending   int // questions until it is done
	locations *pb.GetTableLocationsResponsePB
	authz     int // how many tokens were given
	last      *pb.AlterTableRequestPB
}

// newFakeCluster starts a cluster whose first master leads.
func newFakeCluster(t testing.TB, masters int) *fakeCluster {
	f := &fakeCluster{t: t, id: "cluster 1", tables: map[string]*fakeTable{}}
	for i := range masters {
		f.masters = append(f.masters, rpctest.Start(t, rpctest.Options{Handle: func(r *rpctest.Request) rpctest.Reply {
			return f.master(i, r)
		}}))
	}
	return f
}

// addServer starts a tablet server.
func (f *fakeCluster) addServer(o rpctest.Options) {
	i := len(f.servers)
	o.Handle = func(r *rpctest.Request) rpctest.Reply { return f.serve(i, r) }
	f.servers = append(f.servers, rpctest.Start(f.t, o))
}

// connect returns a client of some masters that does not wait, and the pauses that it would make.
func (f *fakeCluster) connect(o Options, masters ...int) (*Client, *[]time.Duration) {
	f.t.Helper()
	var addresses []string
	for _, i := range masters {
		addresses = append(addresses, f.masters[i].Address)
	}
	pauses := f.patient(&o)
	c, err := Connect(f.t.Context(), addresses, &o)
	must.Do(f.t, err)
	f.t.Cleanup(func() { c.Close() })
	return c, pauses
}

// patient sets options that record pauses instead of making them.
func (f *fakeCluster) patient(o *Options) *[]time.Duration {
	var mu sync.Mutex
	var pauses []time.Duration
	o.User, o.seed = "alice", 1
	o.sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		pauses = append(pauses, d)
		if len(pauses) > 100 {
			return fmt.Errorf("100 pauses: %w", context.DeadlineExceeded)
		}
		return ctx.Err()
	}
	return &pauses
}

// set changes the cluster.
func (f *fakeCluster) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// called returns how often a method was called at a master.
func (f *fakeCluster) called(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c == method {
			n++
		}
	}
	return n
}

func masterError(code pb.MasterErrorCode, status int32) *pb.MasterErrorPB {
	return &pb.MasterErrorPB{Code: proto.Int32(int32(code)),
		Status: &kudupb.AppStatusPB{Code: &status, Message: proto.String("says the master")}}
}

func (f *fakeCluster) master(i int, r *rpctest.Request) rpctest.Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, r.Method())
	var instead *pbReply
	if f.hook != nil {
		instead = f.hook(i, r.Method())
	}
	if instead != nil && !instead.after {
		return instead.Reply
	}
	m := f.answer(i, r)
	if instead != nil {
		return instead.Reply
	}
	return rpctest.Reply{Message: m}
}

// parse returns the request of a call.
func parse[M proto.Message](f *fakeCluster, r *rpctest.Request, m M) M {
	must.Do(f.t, proto.Unmarshal(r.Body, m))
	return m
}

func (f *fakeCluster) answer(i int, r *rpctest.Request) proto.Message {
	if r.Method() == "ConnectToMaster" {
		return f.greet(i)
	}
	if i != f.leader {
		return &pb.ListTablesResponsePB{Error: masterError(pb.MasterErrorCode_MASTER_NOT_THE_LEADER, 9)}
	}
	switch r.Method() {
	case "ListTables":
		m := &pb.ListTablesResponsePB{}
		for id, t := range f.tables {
			m.Tables = append(m.Tables, &pb.ListTablesResponsePB_TableInfo{Id: []byte(id), Name: t.create.Name,
				LiveRowCount: proto.Uint64(7), NumTablets: proto.Int32(2), NumReplicas: proto.Int32(3)})
		}
		return m
	case "CreateTable":
		return f.create(parse(f, r, &pb.CreateTableRequestPB{}))
	case "ListTabletServers":
		return f.listServers()
	}
	return f.answerTable(r)
}

// answerTable answers a call about a table that exists.
func (f *fakeCluster) answerTable(r *rpctest.Request) proto.Message {
	// All requests have the table in field 1.
	which := parse(f, r, &pb.GetTableSchemaRequestPB{}).Table
	id, t := f.find(which)
	if t == nil {
		return &pb.GetTableSchemaResponsePB{Error: masterError(pb.MasterErrorCode_TABLE_NOT_FOUND, 1)}
	}
	switch r.Method() {
	case "GetTableSchema":
		t.authz++
		schema := proto.Clone(t.create.Schema).(*kudupb.SchemaPB)
		for i, c := range schema.Columns {
			c.Id = proto.Uint32(uint32(10 + i))
		}
		return &pb.GetTableSchemaResponsePB{Schema: schema, TableId: []byte(id), TableName: t.create.Name,
			PartitionSchema: t.create.PartitionSchema, NumReplicas: proto.Int32(3), Owner: proto.String("alice"),
			AuthzToken: &pb.SignedTokenPB{TokenData: fmt.Append(nil, t.authz)}, ExtraConfigs: t.create.ExtraConfigs}
	case "IsCreateTableDone":
		return &pb.IsCreateTableDoneResponsePB{Done: proto.Bool(t.done())}
	case "IsAlterTableDone":
		return &pb.IsAlterTableDoneResponsePB{Done: proto.Bool(t.done()), SchemaVersion: &t.version}
	case "AlterTable":
		t.last, t.version = parse(f, r, &pb.AlterTableRequestPB{}), t.version+1
		if t.last.NewTableName != nil {
			t.create.Name = t.last.NewTableName
		}
		return &pb.AlterTableResponsePB{SchemaVersion: &t.version}
	case "DeleteTable":
		delete(f.tables, id)
		return &pb.DeleteTableResponsePB{}
	case "GetTableStatistics":
		return &pb.GetTableStatisticsResponsePB{OnDiskSize: proto.Int64(1000), LiveRowCount: proto.Int64(7)}
	}
	must.Equal(f.t, r.Method(), "GetTableLocations")
	if t.locations == nil {
		return &pb.GetTableLocationsResponsePB{TtlMillis: proto.Uint32(300_000)}
	}
	return proto.Clone(t.locations)
}

func (f *fakeCluster) greet(i int) proto.Message {
	m := &pb.ConnectToMasterResponsePB{Role: proto.Int32(int32(pb.Role_FOLLOWER)), ClusterId: &f.id}
	for _, s := range f.masters {
		m.MasterAddrs = append(m.MasterAddrs, hostPort(s.Address))
	}
	if i == f.leader {
		m.Role, m.AuthnToken = proto.Int32(int32(pb.Role_LEADER)), f.token
		if f.ca != nil {
			m.CaCertDer = [][]byte{f.ca}
		}
	}
	return m
}

func hostPort(address string) *kudupb.HostPortPB {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.ParseUint(port, 10, 32)
	return &kudupb.HostPortPB{Host: &host, Port: proto.Uint32(uint32(n))}
}

func (f *fakeCluster) create(m *pb.CreateTableRequestPB) proto.Message {
	for _, t := range f.tables {
		if t.create.GetName() == m.GetName() {
			return &pb.CreateTableResponsePB{Error: masterError(pb.MasterErrorCode_TABLE_ALREADY_PRESENT, 6)}
		}
	}
	id := fmt.Sprintf("id%d", len(f.tables)+1)
	f.tables[id] = &fakeTable{create: m, pending: 2}
	return &pb.CreateTableResponsePB{TableId: []byte(id)}
}

func (f *fakeCluster) find(which *pb.TableIdentifierPB) (string, *fakeTable) {
	if t := f.tables[string(which.TableId)]; t != nil {
		return string(which.TableId), t
	}
	for id, t := range f.tables {
		if which.TableName != nil && t.create.GetName() == which.GetTableName() {
			return id, t
		}
	}
	return "", nil
}

func (f *fakeCluster) listServers() proto.Message {
	m := &pb.ListTabletServersResponsePB{}
	for i, s := range f.servers {
		m.Servers = append(m.Servers, &pb.ListTabletServersResponsePB_Entry{
			InstanceId: &pb.NodeInstancePB{PermanentUuid: fmt.Append(nil, "server ", i), InstanceSeqno: proto.Int64(1)},
			Registration: &pb.ServerRegistrationPB{RpcAddresses: []*kudupb.HostPortPB{hostPort(s.Address)},
				SoftwareVersion: proto.String("kudu 1.18.1")}, MillisSinceHeartbeat: proto.Int32(1500)})
	}
	return m
}

// done counts a question whether a table is there, or altered.
func (t *fakeTable) done() bool {
	t.pending--
	return t.pending < 0
}

// place describes a tablet of a fake table for [start, end), whose replicas are at all servers; leads
// is the leader, or -1.
func (f *fakeCluster) place(id, start, end string, leads int) *pb.TabletLocationsPB {
	l := &pb.TabletLocationsPB{TabletId: []byte(id),
		Partition: &kudupb.PartitionPB{PartitionKeyStart: []byte(start), PartitionKeyEnd: []byte(end)}}
	for i := range f.servers {
		role := pb.Role_FOLLOWER
		if i == leads {
			role = pb.Role_LEADER
		}
		l.InternedReplicas = append(l.InternedReplicas, &pb.TabletLocationsPB_InternedReplicaPB{
			TsInfoIdx: proto.Uint32(uint32(i)), Role: proto.Int32(int32(role))})
	}
	return l
}

// locate sets where the tablets of a table are.
func (f *fakeCluster) locate(table string, tablets ...*pb.TabletLocationsPB) {
	m := &pb.GetTableLocationsResponsePB{TtlMillis: proto.Uint32(300_000)}
	for _, l := range tablets {
		m.TabletLocations = append(m.TabletLocations, proto.Clone(l).(*pb.TabletLocationsPB))
	}
	for i, s := range f.servers {
		m.TsInfos = append(m.TsInfos, &pb.TSInfoPB{PermanentUuid: fmt.Append(nil, "server ", i),
			RpcAddresses: []*kudupb.HostPortPB{hostPort(s.Address)}})
	}
	f.set(func() { f.tables[table].locations = m })
}
