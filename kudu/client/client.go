package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// Client is a connection to a cluster: one for each server that it has called. Safe for concurrent
// use.
type Client struct {
	o       Options
	pool    *kudurpc.Pool
	masters *masters
	clock   clock

	mu  sync.Mutex
	rnd *rand.Rand // of the pauses between attempts
}

// defaultPort is the port of masters.
const defaultPort = 7051

// Connect finds the leading master of a cluster. masters are addresses, host:port or host, of its
// masters; one suffices if it is running. Errors: ErrUnauthorized, ErrUnsupported.
func Connect(ctx context.Context, masters []string, o *Options) (*Client, error) {
	with, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(masters) == 0 {
		return nil, errors.New("no address of a master")
	}
	c := &Client{o: with, pool: with.pool(), rnd: rand.New(rand.NewPCG(with.seed, 0))}
	c.masters = newMasters(c)
	for _, address := range masters {
		address, err := withPort(address)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.masters.add(address)
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	if err := c.findLeader(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// withPort returns the address of a master, which may lack the port.
func withPort(address string) (string, error) {
	if host, port, err := net.SplitHostPort(address); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || n == 0 {
			return "", fmt.Errorf("master %q: want HOST:PORT", address)
		}
		return address, nil
	}
	if _, err := netip.ParseAddr(address); address == "" || err != nil && strings.ContainsAny(address, ":[] ") {
		return "", fmt.Errorf("master %q: want HOST:PORT", address)
	}
	return net.JoinHostPort(address, strconv.Itoa(defaultPort)), nil
}

// Close closes all connections. Calls in flight and later ones return ErrClosed. It may be called
// twice.
func (c *Client) Close() error {
	c.pool.Close()
	return nil
}

// ID returns the cluster's ID, which never changes.
func (c *Client) ID() string {
	c.masters.mu.Lock()
	defer c.masters.mu.Unlock()
	return c.masters.cluster
}

// TableInfo is a table in a list.
type TableInfo struct {
	ID, Name string
	Rows     uint64 // not exact
	Tablets  int
	Replicas int // of each tablet
}

// Tables returns the cluster's tables.
func (c *Client) Tables(ctx context.Context) ([]TableInfo, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	var m pb.ListTablesResponsePB
	if _, err := c.master(ctx, "ListTables", &pb.ListTablesRequestPB{}, &m); err != nil {
		return nil, err
	}
	tables := make([]TableInfo, len(m.Tables))
	for i, t := range m.Tables {
		tables[i] = TableInfo{string(t.Id), t.GetName(), t.GetLiveRowCount(), int(t.GetNumTablets()),
			int(t.GetNumReplicas())}
	}
	return tables, nil
}

// Server is a tablet server.
type Server struct {
	ID        string
	Addresses []string
	Version   string        // such as "kudu 1.18.1 (rev …)"
	Heartbeat time.Duration // since the master has last heard of it
	Location  string
}

// Servers returns the cluster's tablet servers, also those that the leading master has not heard of
// for some time.
func (c *Client) Servers(ctx context.Context) ([]Server, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	var m pb.ListTabletServersResponsePB
	if _, err := c.master(ctx, "ListTabletServers", &pb.ListTabletServersRequestPB{}, &m); err != nil {
		return nil, err
	}
	servers := make([]Server, len(m.Servers))
	for i, s := range m.Servers {
		servers[i] = Server{string(s.GetInstanceId().GetPermanentUuid()), addresses(s.GetRegistration().GetRpcAddresses()),
			s.GetRegistration().GetSoftwareVersion(), time.Duration(s.GetMillisSinceHeartbeat()) * time.Millisecond,
			s.GetLocation()}
	}
	return servers, nil
}

// DeleteTable deletes a table with all its rows. Errors: ErrNoTable, ErrUnauthorized.
func (c *Client) DeleteTable(ctx context.Context, name string) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	// By its ID: a repetition does not delete a new table of the same name.
	m, err := c.tableSchema(ctx, byName(name))
	if err != nil {
		return fmt.Errorf("table %q: %w", name, err)
	}
	unsure, err := c.master(ctx, "DeleteTable",
		&pb.DeleteTableRequestPB{Table: &pb.TableIdentifierPB{TableId: m.TableId}}, &pb.DeleteTableResponsePB{})
	if errors.Is(err, ErrNoTable) && unsure {
		return nil // an attempt whose answer was lost has deleted it
	}
	if err != nil {
		return fmt.Errorf("table %q: %w", name, err)
	}
	return nil
}

func byName(name string) *pb.TableIdentifierPB {
	return &pb.TableIdentifierPB{TableName: proto.String(name)}
}

// addresses returns messages of addresses as text.
func addresses(m []*kudupb.HostPortPB) (out []string) {
	for _, a := range m {
		out = append(out, net.JoinHostPort(a.GetHost(), strconv.FormatUint(uint64(a.GetPort()), 10)))
	}
	return out
}
