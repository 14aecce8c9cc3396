package client

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/kudurpc"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// secure are flags of servers as they are by default: clients on the same host prove by TLS who they
// are and go on in clear text.
var secure = []string{"--rpc_authentication=optional", "--rpc_encryption=optional"}

// allColumns are columns of all types that Kudu's clients know, with all that columns can have.
func allColumns() []schema.Column {
	text, number := []byte("é"), []byte{7, 0, 0, 0, 0, 0, 0, 0}
	return []schema.Column{{Name: "k1", Type: schema.String, Key: true, Encoding: schema.Prefix},
		{Name: "k2", Type: schema.Int32, Key: true, Comment: "a comment"},
		{Name: "k3", Type: schema.Date, Key: true}, {Name: "k4", Type: schema.Decimal128, Precision: 38, Scale: 38, Key: true},
		{Name: "i8", Type: schema.Int8, Nullable: true}, {Name: "i16", Type: schema.Int16, BlockBytes: 4096},
		{Name: "i64", Type: schema.Int64, Default: number, Encoding: schema.RLE, Compression: schema.Zlib},
		{Name: "f", Type: schema.Float}, {Name: "d", Type: schema.Double, Nullable: true, Immutable: true},
		{Name: "b", Type: schema.Bool, Default: []byte{1}}, {Name: "t", Type: schema.Timestamp},
		{Name: "d32", Type: schema.Decimal32, Precision: 9}, {Name: "d64", Type: schema.Decimal64, Precision: 18, Scale: 3},
		{Name: "s", Type: schema.String, Default: text, Compression: schema.LZ4}, {Name: "y", Type: schema.Binary},
		{Name: "v", Type: schema.Varchar, Length: 65535, Nullable: true}}
}

// withoutIDs returns the columns of a table as they were created.
func withoutIDs(s *schema.Schema) []schema.Column {
	columns := slices.Clone(s.Columns)
	for i := range columns {
		columns[i].ID = 0
	}
	return columns
}

// Real masters create, describe, alter, and delete tables as this client asks them, over connections
// that tablet servers take by token, while leading masters are killed and start again.
func TestMastersThatAreKilled(t *testing.T) {
	cluster := kudutest.NewCluster(t, 3)
	cluster.AddMaster()
	cluster.AddMaster()
	cluster.Flags = secure
	cluster.Start()
	c := must.Get(Connect(t.Context(), []string{cluster.Masters[2].Address}, &Options{User: "alice"}))(t)
	defer c.Close()
	must.Equal(t, len(must.Get(c.Servers(t.Context()))(t)), 3)
	s := must.Get(schema.New(allColumns()))(t)
	hash := []Hash{{Columns: []string{"k1"}, Buckets: 3}, {Columns: []string{"k2", "k3"}, Buckets: 2, Seed: 1 << 31}}
	own := []Hash{{Columns: []string{"k2"}, Buckets: 5}, {Columns: []string{"k1"}, Buckets: 4, Seed: 3}}
	spec := &TableSpec{Schema: s, Replicas: 3, Comment: "text", Owner: "bob",
		Config: map[string]string{"kudu.table.history_max_age_sec": "1000"},
		Partitioning: Partitioning{Hash: hash, Range: []string{"k2", "k1"}, Ranges: []Range{{To: []any{-5}},
			{From: []any{-5}, To: []any{0, "m\x00"}, Hash: own}, {From: []any{10}, To: []any{20}}}}}
	want := must.Get(s.Created())(t)
	rounds := seedtest.Rounds(4, 2)
	for round := range rounds {
		spec.Name = fmt.Sprint("table", round)
		table := must.Get(c.CreateTable(t.Context(), spec))(t)
		must.Equal(t, withoutIDs(table.Schema), withoutIDs(want))
		must.Equal(t, table.Config, spec.Config)
		must.Equal(t, []any{table.Owner, table.Comment, table.Replicas}, []any{"bob", "text", 3})
		must.Equal(t, table.Partitioning, Partitioning{Hash: hash, Range: []string{"k2", "k1"},
			Ranges: []Range{{From: []any{int32(-5)}, To: []any{int32(0), "m\x00"}, Hash: own}}})
		tablets := must.Get(table.Tablets(t.Context()))(t)
		must.Equal(t, len(tablets), 6+20+6)
		listed := cluster.Tool("table", "list", cluster.Master, "--list_tablets", "--tables="+spec.Name)
		for _, id := range tablets {
			must.Contain(t, listed, "T "+id)
		}
		alterEachWay(t, c, table)
		pingEach(t, c, table)
		cluster.StartMasters()
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stopLeader(cluster, c)
		}()
		small := &TableSpec{Name: fmt.Sprint("small", round), Schema: s, Replicas: 3}
		must.Do(t, must.Err(c.CreateTable(t.Context(), small))) // the leader may end at any moment of it
		<-stopped
	}
	names := map[string]bool{}
	for _, info := range must.Get(c.Tables(t.Context()))(t) {
		names[info.Name] = true
		must.Do(t, c.DeleteTable(t.Context(), info.Name))
		must.Fail(t, c.DeleteTable(t.Context(), info.Name), ErrNoTable)
	}
	must.Equal(t, len(names), 2*rounds)
	must.Equal(t, len(must.Get(c.Tables(t.Context()))(t)), 0)
}

// stopLeader kills the leading master.
func stopLeader(cluster *kudutest.Cluster, c *Client) {
	leader, _ := c.masters.current()
	for _, m := range cluster.Masters {
		if m.Address == leader {
			cluster.Stop(m)
		}
	}
}

// alterEachWay makes each kind of alteration, and compares the tables with what it has asked for.
func alterEachWay(t *testing.T, c *Client, table *Table) {
	t.Helper()
	must.Equal(t, must.Get(table.SchemaVersion(t.Context()))(t), 0)
	name := table.Name
	altered := must.Get(c.AlterTable(t.Context(), name, DropColumn("f"), RenameColumn("d", "e"), SetDefault("i64", nil),
		SetDefault("i16", 3), SetStorage("y", schema.Plain, schema.LZ4HC, 8192),
		AddColumn(schema.Column{Name: "n", Type: schema.Decimal64, Precision: 10, Scale: 2, Default: make([]byte, 8)}),
		AddColumn(schema.Column{Name: "i", Type: schema.Int8, Nullable: true, Immutable: true}),
		AddRange(Range{From: []any{20}, To: []any{30}}),
		AddRange(Range{From: []any{30}, Hash: []Hash{{Columns: []string{"k1"}, Buckets: 2}, {Columns: []string{"k3"}, Buckets: 2}}}),
		DropRange(Range{To: []any{-5}}), SetOwner("carol"), SetComment(""),
		SetConfig(map[string]string{"kudu.table.history_max_age_sec": "2000"})))(t)
	must.Equal(t, must.Get(table.SchemaVersion(t.Context()))(t) > 0, true)
	s := altered.Schema
	must.Equal(t, s.Index("f"), -1)
	must.Equal(t, s.Columns[s.Index("e")].ID, table.Schema.Columns[table.Schema.Index("d")].ID)
	must.Equal(t, s.Columns[s.Index("i64")].Default == nil, true)
	must.Equal(t, s.Columns[s.Index("i16")].Default, []byte{3, 0})
	y, n := s.Columns[s.Index("y")], s.Columns[s.Index("n")]
	must.Equal(t, []any{y.Encoding, y.Compression, y.BlockBytes}, []any{schema.Plain, schema.LZ4, int32(8192)})
	must.Equal(t, []any{n.Precision, n.Scale, n.ReadDefault}, []any{10, 2, make([]byte, 8)})
	must.Equal(t, s.Columns[s.Index("i")].Immutable, true)
	must.Equal(t, []any{altered.Owner, altered.Comment}, []any{"carol", ""})
	must.Equal(t, altered.Config, map[string]string{"kudu.table.history_max_age_sec": "2000"})
	must.Equal(t, len(altered.Partitioning.Ranges), 2)
	must.Equal(t, len(must.Get(altered.Tablets(t.Context()))(t)), 20+6+6+4)
	for text, step := range map[string]Alteration{
		"INVALID_ARGUMENT": AddRange(Range{From: []any{25}, To: []any{26}}),
		"NOT_FOUND":        DropColumn("f"),
		"ALREADY_PRESENT":  AddColumn(schema.Column{Name: "n", Type: schema.Int8, Nullable: true}),
	} {
		must.Contain(t, must.Err(c.AlterTable(t.Context(), name, step)).Error(), text)
	}
	renamed := must.Get(c.AlterTable(t.Context(), name, RenameTable(name+" renamed")))(t)
	must.Equal(t, renamed.ID, table.ID)
	must.Equal(t, renamed.Name, name+" renamed")
	must.Fail(t, must.Err(c.OpenTable(t.Context(), name)), ErrNoTable)
}

// pingEach calls each server of a table.
func pingEach(t *testing.T, c *Client, table *Table) {
	t.Helper()
	s := must.Get(table.refresh(t.Context(), table.locations.current()))(t)
	must.Equal(t, len(s.all[0].replicas), 3)
	for i := range s.all[0].replicas {
		must.Do(t, c.at(t.Context(), &s.all[0].replicas[i], pingCall()))
	}
}

// Clients meet the demands of servers, or are told what to do.
func TestDemandsOfServers(t *testing.T) {
	corpustest.NeedKudu(t)
	cluster := kudutest.NewCluster(t, 1)
	cluster.Flags = []string{"--rpc_authentication=optional", "--rpc_encryption=required",
		"--rpc_encrypt_loopback_connections=true"}
	cluster.Start()
	refused := func(o Options, text string) {
		t.Helper()
		err := must.Err(Connect(t.Context(), []string{cluster.Master}, &o))
		must.Refuse(t, err)
		must.Contain(t, err.Error(), text)
	}
	refused(Options{}, "give the cluster's CA certificates (Options.RootCAs), or allow it (Options.Insecure)")
	refused(Options{RootCAs: rpctest.NewCA(t).Pool()}, "certificate signed by unknown authority")
	c := must.Get(Connect(t.Context(), []string{cluster.Master}, &Options{Insecure: true}))(t)
	defer c.Close()
	var m pb.ConnectToMasterResponsePB
	must.Do(t, must.Err(c.master(t.Context(), "ConnectToMaster", &pb.ConnectToMasterRequestPB{}, &m)))
	roots := x509.NewCertPool()
	roots.AddCert(must.Get(x509.ParseCertificate(m.CaCertDer[0]))(t))
	c = must.Get(Connect(t.Context(), []string{cluster.Master}, &Options{RootCAs: roots}))(t)
	defer c.Close()
	table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "t", Schema: testSchema(t)}))(t)
	s := must.Get(table.tablets(t.Context()))(t)
	must.Do(t, c.at(t.Context(), &s.all[0].replicas[0], pingCall()))

	// A server refuses a wrong token, and the client then gets a new one.
	must.Do(t, c.pool.Trust(m.CaCertDer, &pb.SignedTokenPB{TokenData: []byte("no token"), Signature: []byte("none"),
		SigningKeySeqNum: proto.Int64(1)}))
	other := &replica{addresses: []string{strings.Replace(s.all[0].replicas[0].addresses[0], "127.0.0.1", "localhost", 1)}}
	err := c.pool.Do(t.Context(), other.addresses[0], &kudurpc.Call{Service: kudurpc.TabletServerService, Method: "Ping",
		Request: &pb.PingRequestPB{}, Response: &pb.PingResponsePB{}})
	must.Equal(t, kudurpc.ClassOf(err), kudurpc.AuthnToken, err)
	must.Do(t, c.at(t.Context(), other, pingCall()))
}

// A master that demands authentication takes a JWT over a connection whose certificate the client
// checks, and no other one.
func TestMastersTakeJWTs(t *testing.T) {
	corpustest.NeedKudu(t)
	cluster := kudutest.NewCluster(t, 0)
	dir := t.TempDir()
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(dir, name)
		if kind != "" {
			content = pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
		}
		must.Do(t, os.WriteFile(path, content, 0o600))
		return path
	}
	ca := rpctest.NewCA(t)
	server := ca.Server()
	private := must.Get(x509.MarshalPKCS8PrivateKey(server.PrivateKey))(t)
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	encode := base64.RawURLEncoding.EncodeToString
	keys := must.Get(json.Marshal(map[string]any{"keys": []map[string]string{{"kty": "RSA", "use": "sig", "alg": "RS256",
		"kid": "k1", "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes())}}}))(t)
	cluster.Masters[0].Flags = []string{"--rpc_authentication=required", "--rpc_encryption=required",
		"--enable_jwt_token_auth=true", "--jwks_file_path=" + write("jwks.json", "", keys),
		"--rpc_certificate_file=" + write("cert.pem", "CERTIFICATE", server.Certificate[0]),
		"--rpc_private_key_file=" + write("key.pem", "PRIVATE KEY", private),
		"--rpc_ca_certificate_file=" + write("ca.pem", "CERTIFICATE", ca.DER)}
	cluster.StartMasters()
	jwt := func(expires time.Time) string {
		claims := fmt.Sprintf(`{"iss":"test","sub":"alice","exp":%d}`, expires.Unix())
		text := encode([]byte(`{"alg":"RS256","typ":"JWT","kid":"k1"}`)) + "." + encode([]byte(claims))
		sum := sha256.Sum256([]byte(text))
		return text + "." + encode(must.Get(rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]))(t))
	}
	valid := Options{RootCAs: ca.Pool(), JWT: jwt(time.Now().Add(time.Hour))}
	c := must.Get(Connect(t.Context(), []string{cluster.Master}, &valid))(t)
	defer c.Close()
	must.Equal(t, len(must.Get(c.Tables(t.Context()))(t)), 0)
	for _, test := range []struct {
		o    Options
		text string
		kind error
	}{
		{Options{RootCAs: ca.Pool(), JWT: jwt(time.Now().Add(-time.Hour))}, "FATAL_INVALID_JWT", ErrUnauthorized},
		{Options{RootCAs: ca.Pool()}, "SASL server mechanism list is empty", ErrUnauthorized},
		{Options{RootCAs: rpctest.NewCA(t).Pool(), JWT: valid.JWT}, "unknown authority", nil},
		{Options{JWT: valid.JWT, Insecure: true}, "Options.RootCAs", ErrUnauthorized},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := must.Err(Connect(ctx, []string{cluster.Master}, &test.o))
		cancel()
		must.Refuse(t, err, test.text)
		must.Contain(t, err.Error(), test.text)
		if test.kind != nil {
			must.Fail(t, err, test.kind)
		}
		if test.o.JWT != "" {
			must.Equal(t, strings.Contains(err.Error(), test.o.JWT), false)
		}
	}
}
