import com.stumbleupon.async.Deferred;
import java.io.IOException;
import java.util.*;
import org.apache.kudu.*;
import org.apache.kudu.client.*;

/** The table lineitem: one tablet, one replica, Kudu's default encodings. Decimals are integers of hundredths, dates are days since 1970-01-01. */
final class Lineitem {
  /** Receives the rows of a scan; a row is valid until the next one. */
  interface Sink {
    void row(RowResult r) throws IOException;
  }

  private static final String NAME = "lineitem";
  private static final String[] COLUMNS = {"l_orderkey", "l_linenumber", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_tax",
      "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode", "l_comment"};
  private static final int TAX = 7;
  private static final int LOAD_BUFFER = 5000; // rows
  private static final int CHANGE_BUFFER = 100_000; // rows; more than in any batch of changes

  final AsyncKuduClient async;
  final KuduClient client;
  final KuduTable table;
  private final KuduSession changes;

  private Lineitem(AsyncKuduClient async, KuduTable table) {
    this.async = async;
    client = async.syncClient();
    this.table = table;
    changes = client.newSession();
    changes.setFlushMode(SessionConfiguration.FlushMode.MANUAL_FLUSH);
    changes.setMutationBufferSpace(CHANGE_BUFFER);
  }

  /** Opens the table, and creates it if it does not exist, once a server is ready. */
  static Lineitem open(AsyncKuduClient async) throws Exception {
    KuduClient client = async.syncClient();
    while (client.listTabletServers().getTabletServersCount() == 0) {
      Thread.sleep(20);
    }
    if (!client.tableExists(NAME)) {
      client.createTable(NAME, schema(), new CreateTableOptions().setNumReplicas(1).setRangePartitionColumns(List.of(COLUMNS[0])));
    }
    Lineitem t = new Lineitem(async, client.openTable(NAME));
    t.get(new Key(0, 0), r -> {});
    return t;
  }

  private static Schema schema() {
    Map<Integer, Type> types = new HashMap<>();
    for (int c : Records.INTS) {
      types.put(c, Type.INT32);
    }
    for (int c : Records.TEXTS) {
      types.put(c, Type.STRING);
    }
    types.put(1, Type.INT32);
    List<ColumnSchema> columns = new ArrayList<>();
    for (int i = 0; i < COLUMNS.length; i++) {
      columns.add(new ColumnSchema.ColumnSchemaBuilder(COLUMNS[i], types.getOrDefault(i, Type.INT64)).key(i < 2).build());
    }
    return new Schema(columns);
  }

  /** Inserts all records, with background flushes, and returns their number. */
  long load(Records records) throws IOException, KuduException {
    KuduSession s = client.newSession();
    s.setFlushMode(SessionConfiguration.FlushMode.AUTO_FLUSH_BACKGROUND);
    s.setMutationBufferSpace(LOAD_BUFFER);
    long n = 0;
    for (; records.next(); n++) {
      Insert op = table.newInsert();
      records.fill(op.getRow());
      s.apply(op);
    }
    s.close();
    if (s.countPendingErrors() > 0) {
      throw new IOException(s.getPendingErrors().getRowErrors()[0].toString());
    }
    return n;
  }

  void upsert(Records records) throws IOException, KuduException {
    while (records.next()) {
      Upsert op = table.newUpsert();
      records.fill(op.getRow());
      changes.apply(op);
    }
    flush();
  }

  void updateTax(Records keys, long tax) throws IOException, KuduException {
    while (keys.next()) {
      Update op = table.newUpdate();
      key(op.getRow(), keys.key);
      op.getRow().addLong(TAX, tax);
      changes.apply(op);
    }
    flush();
  }

  /** Flushes the buffered changes. */
  private void flush() throws IOException, KuduException {
    for (OperationResponse r : changes.flush()) {
      if (r.hasRowError()) {
        throw new IOException(r.getRowError().toString());
      }
    }
  }

  private static PartialRow key(PartialRow row, Key k) {
    row.addLong(0, k.order);
    row.addInt(1, k.line);
    return row;
  }

  /** Builds a scan for one key, with equality predicates on both key columns, so that the server seeks. */
  private <S extends AbstractKuduScannerBuilder<? super S, T>, T> T one(AbstractKuduScannerBuilder<S, T> b, Key k) {
    b.addPredicate(KuduPredicate.newComparisonPredicate(table.getSchema().getColumnByIndex(0), KuduPredicate.ComparisonOp.EQUAL, k.order));
    b.addPredicate(KuduPredicate.newComparisonPredicate(table.getSchema().getColumnByIndex(1), KuduPredicate.ComparisonOp.EQUAL, (long) k.line));
    return b.build();
  }

  void get(Key k, Sink sink) throws IOException, KuduException {
    drain(one(client.newScannerBuilder(table), k), sink);
  }

  /** Reads rows with one concurrent scan per key, since no call takes several keys. */
  void getMany(List<Key> keys, Sink sink) throws Exception {
    List<AsyncKuduScanner> scans = new ArrayList<>(keys.size());
    List<Deferred<RowResultIterator>> under = new ArrayList<>(keys.size());
    for (Key k : keys) {
      AsyncKuduScanner s = one(async.newScannerBuilder(table), k);
      scans.add(s);
      under.add(s.nextRows());
    }
    for (int i = 0; i < scans.size(); i++) {
      AsyncKuduScanner s = scans.get(i);
      for (RowResultIterator rows = under.get(i).join(); ; rows = s.nextRows().join()) {
        if (rows != null) {
          for (RowResult r : rows) {
            sink.row(r);
          }
        }
        if (!s.hasMoreRows()) {
          break;
        }
      }
    }
  }

  /** Reads rows in key order. */
  void range(Key from, int n, Sink sink) throws IOException, KuduException {
    KuduScanner.KuduScannerBuilder b = client.newScannerBuilder(table);
    b.lowerBound(key(table.getSchema().newPartialRow(), from)).setFaultTolerant(true).limit(n);
    drain(b.build(), sink);
  }

  static void drain(KuduScanner s, Sink sink) throws IOException, KuduException {
    while (s.hasMoreRows()) {
      RowResultIterator rows = s.nextRows();
      while (rows.hasNext()) {
        sink.row(rows.next());
      }
    }
    s.close();
  }
}
