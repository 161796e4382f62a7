import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;

import org.apache.spark.Partition;
import org.apache.spark.rdd.ParallelCollectionPartition;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.ProjectingInternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.RDDScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Scans whose rows Python replaces, and plans over them that run in the thread that asks: in one call, however many of each.
 *
 * Rows come and go by two files, as Arrow batches with their length before them, big-endian; END ends what one plan has made. They stay
 * Arrow in memory, and are decoded as a plan reads them, only in the columns that it asks for. Where many come, Spark's generated code
 * evaluates its expressions, else what it falls back to: making code takes longer than interpreting a few thousand rows.
 */
public class Held {
  private static final int END = -4;
  private static final scala.reflect.ClassTag ROW = scala.reflect.ClassTag$.MODULE$.apply(InternalRow.class);

  private SparkSession session;
  private SQLConf generating;
  private String zone;
  private RandomAccessFile given;
  private FileChannel position;
  private DataOutputStream out;
  private ArrayList leaves = new ArrayList();
  private ArrayList plans = new ArrayList();

  public Held within(SparkSession session, String given, String taken, String zone) throws IOException {
    Held made = new Held();
    made.session = session;
    made.generating = session.sessionState().conf().clone();
    made.generating.setConfString("spark.sql.codegen.factoryMode", "FALLBACK");
    made.zone = zone;
    made.given = new RandomAccessFile(given, "r");
    FileOutputStream stream = new FileOutputStream(taken);
    made.position = stream.getChannel();
    made.out = new DataOutputStream(new BufferedOutputStream(stream, 1 << 16));
    return made;
  }

  public void close() throws IOException {
    given.close();
    out.close();
  }

  /** The number of a new scan. All its rows lie in one partition, and plans know it. */
  public int leaf(String schema) {
    Leaf made = new Leaf();
    made.schema = (StructType) DataType.fromJson(schema);
    made.rows = noRows();
    made.add(new Scan(made.rows, made.schema, zone, null));
    LogicalPlan scan = session.internalCreateDataFrame(made.rows, made.schema, false).queryExecution().analyzed();
    Object[] parts = new Object[scan.productArity()];
    for (int i = 0; i < parts.length; i++) {
      Object part = scan.productElement(i);
      parts[i] = part instanceof UnknownPartitioning ? SinglePartition$.MODULE$ : part;
    }
    made.plan = (LogicalPlan) scan.makeCopy(parts);
    leaves.add(made);
    return leaves.size() - 1;
  }

  public LogicalPlan scan(int leaf) {
    return ((Leaf) leaves.get(leaf)).plan;
  }

  private RDD noRows() {
    return new org.apache.spark.api.java.JavaSparkContext(session.sparkContext()).parallelize(new ArrayList(), 1).rdd();
  }

  /** What kinds of nodes a plan has, separated by spaces. */
  public String kinds(SparkPlan plan) {
    StringBuilder found = new StringBuilder(plan.getClass().getSimpleName());
    scala.collection.Iterator each = plan.children().iterator();
    while (each.hasNext()) found.append(' ').append(kinds((SparkPlan) each.next()));
    return plan.subqueries().isEmpty() ? found.toString() : found.append(" Subquery").toString();
  }

  /** The number of a plan that needs neither a task nor any other thread. */
  public int plan(SparkPlan plan, String schema) {
    Kept made = new Kept();
    made.rows = (RDD) pruned(plan, null).execute();
    made.schema = (StructType) DataType.fromJson(schema);
    plans.add(made);
    return plans.size() - 1;
  }

  /** Puts batches into leaves ("LEAF COUNT LEAF COUNT ...", in the order of the file) and runs plans ("PLAN PLAN ..."), at most so many
   *  rows of each. `generated`: by generated code. */
  public void run(String puts, final String plans, final int most, boolean generated) throws Exception {
    position.position(0);
    put(puts);
    if (plans.isEmpty()) return;
    try {
      if (!generated) {
        evaluate(plans, most);
      } else {
        SQLConf$.MODULE$.withExistingConf(generating, new scala.runtime.AbstractFunction0() {
          public Object apply() {
            try {
              evaluate(plans, most);
            } catch (IOException error) {
              throw new UncheckedIOException(error);
            }
            return null;
          }
        });
      }
    } finally {
      out.flush();  // what a failure left behind belongs to nobody
    }
  }

  private void put(String puts) throws IOException {
    if (puts.isEmpty()) return;
    given.seek(0);
    byte[] all = new byte[(int) given.length()];
    given.readFully(all);
    java.nio.ByteBuffer content = java.nio.ByteBuffer.wrap(all);
    String[] parts = puts.split(" ");
    for (int i = 0; i < parts.length; i += 2) {
      ArrayList batches = new ArrayList();
      for (int left = Integer.parseInt(parts[i + 1]); left > 0; left--) {
        int length = content.getInt(), start = content.position();
        batches.add(Arrays.copyOfRange(all, start, start + length));
        content.position(start + length);
      }
      ((Leaf) leaves.get(Integer.parseInt(parts[i]))).put(batches);
    }
  }

  private void evaluate(String numbers, int most) throws IOException {
    String[] parts = numbers.split(" ");
    for (int i = 0; i < parts.length; i++) {
      Kept plan = (Kept) plans.get(Integer.parseInt(parts[i]));
      Partition[] partitions = plan.rows.partitions();
      for (int p = 0; p < partitions.length; p++) {
        scala.collection.Iterator rows = plan.rows.iterator(partitions[p], org.apache.spark.TaskContext$.MODULE$.empty()).take(most);
        write(ArrowConverters$.MODULE$.toBatchIterator(rows, plan.schema, 1L << 18, zone, true, false, null));
      }
      out.writeInt(END);
    }
  }

  private void write(scala.collection.Iterator batches) throws IOException {
    while (batches.hasNext()) {
      byte[] batch = (byte[]) batches.next();
      out.writeInt(batch.length);
      out.write(batch);
    }
  }

  /** Writes the batches that a job has collected, an array of arrays. */
  public void writeCollected(Object batches) throws IOException {
    position.position(0);
    write(seq(new ArrayList(Arrays.asList((Object[]) batches))).iterator());
    out.writeInt(END);
    out.flush();
  }

  /** The plan with scans that give only the columns in `needed`, all of them if null, and what is asked for above. */
  private SparkPlan pruned(SparkPlan plan, AttributeSet needed) {
    if (plan instanceof RDDScanExec) return needed == null ? plan : narrowed((RDDScanExec) plan, needed);
    AttributeSet below = null;
    if (plan instanceof ProjectExec) below = plan.references();
    if (plan instanceof FilterExec && needed != null) below = needed.$plus$plus(plan.references());
    ArrayList children = new ArrayList();
    scala.collection.Iterator each = plan.children().iterator();
    while (each.hasNext()) children.add(pruned((SparkPlan) each.next(), below));
    return (SparkPlan) plan.withNewChildren(seq(children));
  }

  private SparkPlan narrowed(RDDScanExec scan, AttributeSet needed) {
    Leaf leaf = null;
    for (int i = 0; i < leaves.size(); i++) if (((Leaf) leaves.get(i)).rows == scan.rdd()) leaf = (Leaf) leaves.get(i);
    ArrayList output = new ArrayList(), places = new ArrayList(), fields = new ArrayList();
    for (int i = 0; i < scan.output().size(); i++) {
      if (needed.contains((Attribute) scan.output().apply(i))) {
        output.add(scan.output().apply(i));
        places.add(Integer.valueOf(i));
      }
    }
    if (leaf == null || output.size() == scan.output().size()) return scan;
    for (int i = 0; i < places.size(); i++) fields.add(leaf.schema.fields()[((Integer) places.get(i)).intValue()]);
    RDD rows = noRows();
    StructType schema = new StructType((StructField[]) fields.toArray(new StructField[0]));
    leaf.add(new Scan(rows, leaf.schema, zone, ProjectingInternalRow.apply(schema, seq(places))));
    Object[] parts = new Object[scan.productArity()];
    for (int i = 0; i < parts.length; i++) parts[i] = i == 0 ? seq(output) : i == 1 ? rows : scan.productElement(i);
    return (SparkPlan) scan.makeCopy(parts);
  }

  static scala.collection.immutable.Seq seq(ArrayList values) {
    return (scala.collection.immutable.Seq) scala.jdk.javaapi.CollectionConverters.asScala((java.util.List) values).toSeq();
  }

  private static class Kept {
    RDD rows;
    StructType schema;
  }

  private static class Leaf {
    RDD rows;
    StructType schema;
    LogicalPlan plan;
    ArrayList scans = new ArrayList();
    ArrayList batches = new ArrayList();

    void put(ArrayList batches) {
      this.batches = batches;
      for (int i = 0; i < scans.size(); i++) ((Scan) scans.get(i)).batches = batches;
    }

    void add(Scan scan) {
      scan.batches = batches;
      scans.add(scan);
    }
  }

  /** The one partition of a scan: Arrow batches, decoded each time they are read. Whoever reads its rows copies what it keeps. */
  public static class Scan extends ParallelCollectionPartition {
    private StructType schema;
    private String zone;
    private ProjectingInternalRow columns;
    private ArrayList batches = new ArrayList();

    /** Takes the place of the partition of an RDD. `columns`: some of the schema's, or null for all. */
    Scan(RDD rows, StructType schema, String zone, ProjectingInternalRow columns) {
      super((long) rows.id(), 0, seq(new ArrayList()), ROW);
      this.schema = schema;
      this.zone = zone;
      this.columns = columns;
      rows.partitions()[0] = this;
    }

    public scala.collection.Iterator iterator() {
      scala.collection.Iterator rows = ArrowConverters$.MODULE$.fromBatchIterator(seq(batches).iterator(), schema, zone, false, false, null);
      return columns == null ? rows : rows.map(new Chosen(columns));
    }

    /** Tasks of jobs get rows of their own: they know nothing of this class. */
    public Object writeReplace() {
      UnsafeProjection copy = UnsafeProjection.create(columns == null ? schema : columns.schema());
      ArrayList found = new ArrayList();
      scala.collection.Iterator each = iterator();
      while (each.hasNext()) found.add(copy.apply((InternalRow) each.next()).copy());
      return new ParallelCollectionPartition(rddId(), slice(), seq(found), ROW);
    }
  }

  private static class Chosen extends scala.runtime.AbstractFunction1 {
    private ProjectingInternalRow columns;

    Chosen(ProjectingInternalRow columns) {
      this.columns = columns;
    }

    public Object apply(Object row) {
      columns.project((InternalRow) row);
      return columns;
    }
  }
}
